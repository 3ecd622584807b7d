#include "scenarios/evaluating/results_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json_parse.h"
#include "sim/base/output_file.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint32_t kApplication = 0x52454852;  // "REHR"
constexpr uint32_t kVersion = 1;

constexpr const char* kTables =
    "CREATE TABLE points ("
    "study TEXT NOT NULL, point TEXT NOT NULL, hash TEXT NOT NULL, build TEXT NOT NULL, "
    "parameters TEXT NOT NULL, calibrated REAL, reason TEXT, result TEXT, checksum TEXT NOT NULL, "
    "PRIMARY KEY (study, point));"
    "CREATE INDEX points_by_hash ON points (hash);";

uint32_t BigEndian(const std::array<char, 100>& header, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(header[at + i]);
  return value;
}

// Opening it with SQLite might already change the file, so its header is read first.
void CheckHeader(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 100> header{};
  file.read(header.data(), header.size());
  if (file.gcount() == 0 && file.eof()) return;  // empty: nothing is in it yet
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (file.gcount() < static_cast<std::streamsize>(header.size()) ||
      std::string_view(header.data(), kMagic.size()) != kMagic)
    throw Error({path, 0, ""}, "is not a results file; expected one that --results has made");
  if (BigEndian(header, 68) != kApplication)
    throw Error({path, 0, ""},
                "is another program's SQLite file; expected one that --results has made");
  const uint32_t version = BigEndian(header, 60);
  if (version > kVersion)
    throw Error(
        {path, 0, ""},
        fmt::format("is from a newer Rehearse: found version {}, expected {}", version, kVersion));
}

// Whether SQLite can change the file and make its log beside it.
bool CanBeChanged(const std::string& file) {
  std::error_code missing;
  const fs::path real = fs::canonical(file, missing);
  const auto may_write = [](const fs::path& path) {
    return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  };
  return may_write(real) && may_write(real.parent_path());
}

// Numbers alone: of lists, only the busiest link is kept.
Json KeptNumbers(const std::vector<Result>& results) {
  std::vector<Result> slim;
  for (const Result& result : results) {
    Result& one = slim.emplace_back(result);
    const auto busiest = std::find_if(one.links.begin(), one.links.end(),
                                      [](const auto& link) { return link.kind != "memory"; });
    one.links.erase(one.links.begin(), busiest);
    one.links.resize(std::min<size_t>(one.links.size(), 1));
    one.left_out.clear();
    one.roles.clear();
    one.chosen.clear();
    one.routes.reset();
    one.placement.reset();
    one.experts.reset();
    one.trust.reset();
    one.changes.clear();
    one.software = {};
    one.notes.clear();
  }
  return ResultJson(slim);
}

// What is nested deeper than any result is left out: others' files may say anything, and a value is
// read by a function that calls itself for each level.
Json ShallowJson(const std::string& text) {
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) {
    return depth <= static_cast<int>(kDeepestJson);
  };
  return Json::parse(text, is_shallow, false);
}

std::string RowChecksum(const std::string& hash, const std::string& reason,
                        const std::string& result) {
  Fnv1a sum;
  for (const std::string* text : {&hash, &reason, &result}) {
    sum.Add(uint64_t{text->size()});
    sum.Add(*text);
  }
  return fmt::format("{:016x}", sum.hash());
}

}  // namespace

// One connection, and the statements that it has prepared.
class ResultsFile::Database {
 public:
  Database(std::string path, Opening opening) : path_(std::move(path)) {
    if (!HasSqlite()) {
      throw Error({path_, 0, ""},
                  "this build of Rehearse has no SQLite (libsqlite3-dev); sweep "
                  "--out DIR keeps points in files");
    }
    const std::string file = fs::absolute(path_).string();  // ":memory:" is a name like others
    std::error_code missing;
    const fs::file_status status = fs::status(file, missing);
    const bool must_be_there = opening == Opening::kThere || opening == Opening::kShown;
    if (must_be_there && !fs::exists(status)) throw Error({path_, 0, ""}, "there is no such file");
    if (fs::exists(status) && !fs::is_regular_file(status))
      throw Error({path_, 0, ""}, "is not a regular file; expected a results file");
    if (fs::exists(status) && opening != Opening::kNew) {
      CheckHeader(path_);
      if (must_be_there && fs::file_size(file, missing) == 0)
        throw Error({path_, 0, ""}, "is empty; expected results");
    }
    is_frozen_ = opening == Opening::kFrozen;
    if (is_frozen_ && (!fs::exists(status) || fs::file_size(file, missing) == 0)) return;
    if (is_frozen_) {
      connection_.emplace(path_, FrozenSqliteName(file), SqliteConnection::Access::kRead);
      return;
    }
    if (opening == Opening::kShown && !CanBeChanged(file)) {
      is_frozen_ = true;
      OpenUnchanged(file);
      CheckPages();
      return;
    }
    connection_.emplace(path_, file, SqliteConnection::Access::kChange);
    if (opening == Opening::kNew) Do("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
    MakeTables();
    if (opening != Opening::kNew) {
      UseLog();
      Do("PRAGMA synchronous = NORMAL");
      CheckPages();
    }
  }
  const std::string& path() const { return path_; }
  bool is_frozen() const { return is_frozen_; }

  void Do(const std::string& statements) { connection_->Do(statements); }
  int64_t Count() { return std::stoll(connection_->Ask("SELECT count(*) FROM points")); }

  struct Found {
    std::string study, point, reason, result, checksum;
    bool is_impossible = false;
  };
  std::optional<Found> FindRow(const EvaluationKey& key, const std::string& hash) {
    if (!connection_) return std::nullopt;  // frozen before the file existed
    if (!find_) {
      find_ = connection_->Prepare(
          "SELECT study, point, reason, result, checksum FROM points WHERE hash = ?1 "
          "ORDER BY study = ?2 AND point = ?3 DESC LIMIT 1");
    }
    find_.Bind(1, hash);
    find_.Bind(2, key.study);
    find_.Bind(3, key.point);
    std::optional<Found> found;
    if (find_.Step()) {
      found = Found{.study = find_.Text(0),
                    .point = find_.Text(1),
                    .reason = find_.Text(2),
                    .result = find_.Text(3),
                    .checksum = find_.Text(4),
                    .is_impossible = find_.IsNull(3)};
    }
    find_.Reset();
    return found;
  }

  void KeepRow(const KeptPoint& row, const std::string& result, const std::string& checksum) {
    if (!keep_) {
      keep_ = connection_->Prepare(
          "INSERT INTO points VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
          "ON CONFLICT (study, point) DO UPDATE SET hash = ?3, build = ?4, parameters = ?5, "
          "calibrated = ?6, reason = ?7, result = ?8, checksum = ?9 "
          "WHERE checksum <> ?9 OR parameters <> ?5 OR result IS NOT ?8");
    }
    keep_.Bind(1, row.study);
    keep_.Bind(2, row.point);
    keep_.Bind(3, row.hash);
    keep_.Bind(4, row.build);
    keep_.Bind(5, row.parameters.dump());
    row.calibrated ? keep_.Bind(6, *row.calibrated) : keep_.BindNull(6);
    row.reason ? keep_.Bind(7, *row.reason) : keep_.BindNull(7);
    row.reason ? keep_.BindNull(8) : keep_.Bind(8, result);
    keep_.Bind(9, checksum);
    keep_.Step();
    keep_.Reset();
  }

  void ForEachRow(const std::function<void(const KeptPoint&, const std::string& result,
                                           const std::string& checksum)>& visit) {
    SqliteStatement rows = connection_->Prepare(
        "SELECT study, point, hash, build, parameters, calibrated, reason, result, checksum "
        "FROM points ORDER BY study, rowid");
    while (rows.Step()) {
      KeptPoint row = {.study = rows.Text(0),
                       .point = rows.Text(1),
                       .hash = rows.Text(2),
                       .build = rows.Text(3),
                       .parameters = Json::parse(rows.Text(4), nullptr, false),
                       .calibrated = {},
                       .reason = {},
                       .result = nullptr};
      if (!rows.IsNull(5)) row.calibrated = rows.Number(5);
      if (rows.IsNull(7)) row.reason = rows.Text(6);
      visit(row, rows.Text(7), rows.Text(8));
    }
  }

 private:
  void CheckPages() {
    if (const std::string fault = connection_->Ask("PRAGMA quick_check(1)"); fault != "ok")
      throw Error({path_, 0, ""}, "is damaged: " + fault);
  }

  // SQLite reads a file with a log only with the log's index beside it, which it makes. Where it
  // cannot, a file whose log is empty is whole, and read as one that nobody changes.
  void OpenUnchanged(const std::string& file) {
    std::error_code missing;
    const fs::path log = fs::canonical(file, missing).string() + "-wal";
    const bool has_log = fs::exists(log, missing) && fs::file_size(log, missing) > 0;
    try {
      const std::string name = has_log ? ReadOnlySqliteName(file) : FrozenSqliteName(file);
      connection_.emplace(path_, name, SqliteConnection::Access::kRead);
      Count();
    } catch (const Error& error) {
      if (!has_log) throw;
      throw Error({path_, 0, ""},
                  fmt::format("its latest points are in {}, which SQLite does not read in a folder "
                              "that cannot be written; copy both files to another",
                              log.filename().string()));
    }
  }

  void MakeTables() {
    Do("BEGIN IMMEDIATE");
    const bool is_new = connection_->Ask("SELECT count(*) FROM sqlite_schema") == "0";
    if (is_new) {
      Do(kTables);
      Do(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication,
                     kVersion));
    }
    Do("COMMIT");
  }

  // SQLite itself does not wait here. Where a file system cannot have a log, the file works without
  // one.
  void UseLog() {
    const auto begin = std::chrono::steady_clock::now();
    while (!connection_->TryTo("PRAGMA journal_mode = WAL")) {
      const auto past = std::chrono::steady_clock::now() - begin;
      if (past > std::chrono::milliseconds(SqliteConnection::kPatienceMilliseconds))
        return Do("PRAGMA journal_mode = WAL");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const std::string path_;
  bool is_frozen_ = false;
  std::optional<SqliteConnection> connection_;  // none if there is no file yet to be frozen
  SqliteStatement find_;
  SqliteStatement keep_;
};

ResultsFile::ResultsFile(const std::string& path, Opening opening,
                         std::function<void(const std::string& message)> warn)
    : warn_(std::move(warn)), database_(std::make_unique<Database>(path, opening)) {}
ResultsFile::~ResultsFile() = default;

std::optional<Evaluation> ResultsFile::Find(const EvaluationKey& key, const std::string& hash) {
  const std::lock_guard lock(mutex_);
  const std::optional<Database::Found> found = database_->FindRow(key, hash);
  if (!found) return std::nullopt;
  const auto again = [&](const char* what, const char* fails) {
    if (warn_)
      warn_(fmt::format("{}: the {} of point \"{}\" does not {}; it is simulated again",
                        database_->path(), what, found->point, fails));
    return std::nullopt;
  };
  if (found->checksum != RowChecksum(hash, found->reason, found->result))
    return again("checksum", "match");
  Evaluation evaluation;
  if (found->is_impossible) {
    evaluation.error = found->reason;
  } else {
    evaluation.results = ResultsOf(ShallowJson(found->result));
    if (evaluation.results.empty()) return again("result", "read");
  }
  if (!database_->is_frozen() && (found->study != key.study || found->point != key.point)) {
    // From now on it is also a point of this study.
    KeptPoint row = {.study = key.study,
                     .point = key.point,
                     .hash = hash,
                     .build = ThisBuild(),
                     .parameters = Json::object(),
                     .calibrated = key.calibrated,
                     .reason = {},
                     .result = nullptr};
    for (const auto& [path, value] : key.parameters)
      row.parameters[path] = Json::parse(value.dump());
    if (found->is_impossible) row.reason = found->reason;
    database_->KeepRow(row, found->result, found->checksum);
  }
  return evaluation;
}

void ResultsFile::Keep(const EvaluationKey& key, const Evaluation& evaluation) {
  KeptPoint row = {.study = key.study,
                   .point = key.point,
                   .hash = evaluation.hash,
                   .build = ThisBuild(),
                   .parameters = Json::object(),
                   .calibrated = key.calibrated,
                   .reason = {},
                   .result = nullptr};
  for (const auto& [path, value] : key.parameters) row.parameters[path] = Json::parse(value.dump());
  std::string result;
  if (evaluation.error.empty())
    result = KeptNumbers(evaluation.results).dump();
  else
    row.reason = evaluation.error;
  const std::string checksum = RowChecksum(row.hash, evaluation.error, result);
  if (database_->is_frozen()) return;
  const std::lock_guard lock(mutex_);
  database_->KeepRow(row, result, checksum);
}

void ResultsFile::ForEach(const std::function<void(const KeptPoint&)>& visit) {
  const std::lock_guard lock(mutex_);
  database_->ForEachRow(
      [&](const KeptPoint& row, const std::string& result, const std::string& checksum) {
        const std::string reason = row.reason.value_or("");
        KeptPoint whole = row;
        if (!row.reason) whole.result = Json::parse(result, nullptr, false);
        if (checksum != RowChecksum(row.hash, reason, result) || whole.result.is_discarded() ||
            !whole.parameters.is_object())
          throw Error({database_->path(), 0, ""},
                      fmt::format("the checksum of point \"{}\" does not match; the study's "
                                  "command with this file simulates it again",
                                  row.point));
        visit(whole);
      });
}

size_t ResultsFile::Merge(ResultsFile& other) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  const int64_t before = database_->Count();
  database_->Do("BEGIN IMMEDIATE");
  other.database_->ForEachRow(
      [&](const KeptPoint& row, const std::string& result, const std::string& checksum) {
        database_->KeepRow(row, result, checksum);
      });
  database_->Do("COMMIT");
  return static_cast<size_t>(database_->Count() - before);
}

size_t MergeResults(const std::vector<std::string>& inputs, const std::string& output) {
  CheckWritable(output);
  for (const std::string& input : inputs) {
    std::error_code missing;
    if (fs::equivalent(input, output, missing))
      throw Error({output, 0, ""}, "is one of the files to merge; expected another name");
  }
  const std::string place = FollowLinks(output);  // a link stays a link
  const std::string part = place + ".part";
  std::error_code ignored;
  fs::remove(part, ignored);
  size_t points = 0;
  try {
    ResultsFile merged(part, ResultsFile::Opening::kNew);
    for (const std::string& input : inputs) {
      ResultsFile one(input, ResultsFile::Opening::kShown);
      points += merged.Merge(one);
    }
  } catch (...) {
    fs::remove(part, ignored);
    throw;
  }
  if (std::rename(part.c_str(), place.c_str()) != 0) {
    fs::remove(part, ignored);
    throw Error(fmt::format("cannot write {}", output));
  }
  return points;
}

}  // namespace rehearse
