// A connection to an SQLite file and its statements, where the build has SQLite. What SQLite
// complains of becomes an Error that names the file. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace rehearse {

bool HasSqlite();

class SqliteConnection;

class SqliteStatement {
 public:
  SqliteStatement() = default;  // none
  explicit operator bool() const { return statement_ != nullptr; }

  // Parameters are numbered from 1.
  void Bind(int at, const std::string& text);
  void Bind(int at, double number);
  void BindNull(int at);

  // Whether there is a row (or another row). Reset a statement to run it again.
  bool Step();
  void Reset();

  // Columns of the row, from 0; "" and 0 for NULL.
  bool IsNull(int at) const;
  std::string Text(int at) const;
  double Number(int at) const;
  int64_t Whole(int at) const;

 private:
  friend class SqliteConnection;
  struct Closer {
    void operator()(sqlite3_stmt* statement) const;
  };
  const SqliteConnection* connection_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Closer> statement_;
};

// Lives as long as its statements.
class SqliteConnection {
 public:
  enum class Access : uint8_t {
    kRead,    // `name` is a URI
    kChange,  // the file is made if it is not there
  };
  static constexpr int kPatienceMilliseconds = 60'000;  // waits for another process's transaction

  // Of a text or blob that is read from others' files; SQLite would load all of it.
  static constexpr int kLargestValue = 1 << 26;

  // `path` is what messages call it. Throws Error where SQLite cannot open it, or the build has
  // none.
  SqliteConnection(std::string path, const std::string& name, Access access);

  void Do(const std::string& statements);
  // Whether it could be done; false while another process holds the file.
  bool TryTo(const std::string& statements);
  SqliteStatement Prepare(const std::string& text);
  // The first column of the first row; "" if there is none.
  std::string Ask(const std::string& question);

 private:
  friend class SqliteStatement;
  void Check(int code) const;

  struct Closer {
    void operator()(sqlite3* connection) const;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Closer> connection_;
};

// The URI of a file that is read and that nobody changes meanwhile: no locks, no files beside it.
std::string FrozenSqliteName(const std::string& path);
// The URI of a file that is read, with its log, and that others may change meanwhile.
std::string ReadOnlySqliteName(const std::string& path);

}  // namespace rehearse
