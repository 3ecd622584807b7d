#include "sim/base/sqlite_connection.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#ifdef REHEARSE_HAS_SQLITE
#include <sqlite3.h>
#endif

#include "sim/base/error.h"

namespace rehearse {

namespace {

std::string UriOf(const std::string& path) {
  std::string name = "file:";
  for (const char c : path)
    name += std::string_view("%?#").find(c) == std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return name;
}

}  // namespace

std::string FrozenSqliteName(const std::string& path) { return UriOf(path) + "?immutable=1"; }
std::string ReadOnlySqliteName(const std::string& path) { return UriOf(path) + "?mode=ro"; }

#ifdef REHEARSE_HAS_SQLITE

bool HasSqlite() { return true; }

void SqliteStatement::Closer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}
void SqliteConnection::Closer::operator()(sqlite3* connection) const { sqlite3_close(connection); }

void SqliteStatement::Bind(int at, const std::string& text) {
  connection_->Check(sqlite3_bind_text64(statement_.get(), at, text.data(), text.size(),
                                         SQLITE_TRANSIENT, SQLITE_UTF8));
}
void SqliteStatement::Bind(int at, double number) {
  connection_->Check(sqlite3_bind_double(statement_.get(), at, number));
}
void SqliteStatement::BindNull(int at) {
  connection_->Check(sqlite3_bind_null(statement_.get(), at));
}

bool SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    connection_->Check(code);
  }
  return false;
}
void SqliteStatement::Reset() { sqlite3_reset(statement_.get()); }

bool SqliteStatement::IsNull(int at) const {
  return sqlite3_column_type(statement_.get(), at) == SQLITE_NULL;
}
std::string SqliteStatement::Text(int at) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), at));
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), at));
  return text == nullptr ? std::string() : std::string(text, size);
}
double SqliteStatement::Number(int at) const { return sqlite3_column_double(statement_.get(), at); }
int64_t SqliteStatement::Whole(int at) const { return sqlite3_column_int64(statement_.get(), at); }

SqliteConnection::SqliteConnection(std::string path, const std::string& name, Access access)
    : path_(std::move(path)) {
  const int flags = access == Access::kRead
                        ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                              SQLITE_OPEN_EXRESCODE;
  sqlite3* connection = nullptr;
  const int opened = sqlite3_open_v2(name.c_str(), &connection, flags, nullptr);
  connection_.reset(connection);
  Check(opened);
  if (access == Access::kChange) sqlite3_busy_timeout(connection, kPatienceMilliseconds);
  if (access == Access::kRead) sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kLargestValue);
}

void SqliteConnection::Do(const std::string& statements) {
  Check(sqlite3_exec(connection_.get(), statements.c_str(), nullptr, nullptr, nullptr));
}

bool SqliteConnection::TryTo(const std::string& statements) {
  const int code = sqlite3_exec(connection_.get(), statements.c_str(), nullptr, nullptr, nullptr);
  if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) return false;
  Check(code);
  return true;
}

SqliteStatement SqliteConnection::Prepare(const std::string& text) {
  sqlite3_stmt* made = nullptr;
  Check(sqlite3_prepare_v2(connection_.get(), text.c_str(), -1, &made, nullptr));
  SqliteStatement statement;
  statement.connection_ = this;
  statement.statement_.reset(made);
  return statement;
}

std::string SqliteConnection::Ask(const std::string& question) {
  SqliteStatement statement = Prepare(question);
  return statement.Step() ? statement.Text(0) : "";
}

void SqliteConnection::Check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  const std::string words =
      connection_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(connection_.get());
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw Error({path_, 0, ""}, "is damaged: " + words);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error({path_, 0, ""},
                  fmt::format("another process has held it for {} s; expected it to be free",
                              kPatienceMilliseconds / 1000));
    case SQLITE_TOOBIG:
      throw Error({path_, 0, ""}, fmt::format("found a text or blob of more than {} MiB, expected "
                                              "none that large",
                                              kLargestValue >> 20));
    default:
      throw Error({path_, 0, ""}, "cannot be read or written: " + words);
  }
}

#else

bool HasSqlite() { return false; }

void SqliteStatement::Closer::operator()(sqlite3_stmt* /*statement*/) const {}
void SqliteConnection::Closer::operator()(sqlite3* /*connection*/) const {}
void SqliteStatement::Bind(int /*at*/, const std::string& /*text*/) {}
void SqliteStatement::Bind(int /*at*/, double /*number*/) {}
void SqliteStatement::BindNull(int /*at*/) {}
bool SqliteStatement::Step() { return false; }
void SqliteStatement::Reset() {}
bool SqliteStatement::IsNull(int /*at*/) const { return true; }
std::string SqliteStatement::Text(int /*at*/) const { return ""; }
double SqliteStatement::Number(int /*at*/) const { return 0; }
int64_t SqliteStatement::Whole(int /*at*/) const { return 0; }

SqliteConnection::SqliteConnection(std::string path, const std::string& /*name*/,
                                   Access /*access*/) {
  throw Error({path, 0, ""}, "this build of Rehearse has no SQLite (libsqlite3-dev)");
}
void SqliteConnection::Do(const std::string& /*statements*/) {}
bool SqliteConnection::TryTo(const std::string& /*statements*/) { return false; }
SqliteStatement SqliteConnection::Prepare(const std::string& /*text*/) { return {}; }
std::string SqliteConnection::Ask(const std::string& /*question*/) { return ""; }
void SqliteConnection::Check(int /*code*/) const {}

#endif

}  // namespace rehearse
