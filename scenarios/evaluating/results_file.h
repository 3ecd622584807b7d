// Finished points in one SQLite file (--results), of one or many studies, of sweeps and searches.
//
//   points(study, point, hash, build, parameters, calibrated, reason, result, checksum)
//
// has a row for each point. `parameters` is what distinguishes the point and `result` the numbers
// of rehearse.result.v1, both JSON, so that SQLite's json_extract(result, '$.step_seconds') reads
// them; `reason` is set if the point is impossible. A point is found by the hash of its scenario,
// whatever study it was in.
//
// Each point is a transaction in a write-ahead log: a program that is killed loses only the points
// that it was simulating. Several programs may use one file; each waits for the other's
// transaction. The log needs a local file system: several nodes need a file each, to be merged
// afterwards.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/evaluating/engine.h"
#include "sim/base/sqlite_connection.h"

namespace rehearse {

struct KeptPoint {
  std::string study;
  std::string point;
  std::string hash;
  std::string build;
  nlohmann::ordered_json parameters;
  std::optional<double> calibrated;
  std::optional<std::string> reason;  // why it is impossible
  nlohmann::ordered_json result;      // null if it is impossible
};

class ResultsFile : public PointStore {
 public:
  enum class Opening {
    kMakeIfMissing,
    kThere,   // throws Error if there is no file
    kShown,   // likewise, and only to be read: also where its folder cannot be written
    kFrozen,  // read only, while nobody writes: no row is noted as another study's; nothing where
              // there is no file
    kNew      // replaces what is there, without a log, for Merge()
  };
  // Throws Error if the file is damaged or from another program or a newer Rehearse, and leaves it
  // as it is. `warn` is called when a row is damaged; its point is simulated again.
  ResultsFile(const std::string& path, Opening opening,
              std::function<void(const std::string& message)> warn = {});
  ~ResultsFile() override;

  std::optional<Evaluation> Find(const EvaluationKey& key, const std::string& hash) override;
  void Keep(const EvaluationKey& key, const Evaluation& evaluation) override;

  // By study, then in the order in which points were first kept.
  void ForEach(const std::function<void(const KeptPoint&)>& visit);
  // Takes all points of the other file, which win over its own. Returns how many were new.
  size_t Merge(ResultsFile& other);

 private:
  class Database;
  std::mutex mutex_;
  std::function<void(const std::string&)> warn_;
  std::unique_ptr<Database> database_;
};

// Makes one file out of several; of a point that several have, the last one counts. The file
// appears when it is complete. Returns how many points it has.
size_t MergeResults(const std::vector<std::string>& inputs, const std::string& output);

}  // namespace rehearse
