// The one way from points to results, for sweeps and searches. A point is a scenario with changes,
// or two scenarios whose difference counts. It is read, looked up among the finished points,
// simulated if it is not there, and kept.
//
// A finished point is known by a hash of what its scenarios say, of every file that was read for
// them (clusters, calibrations, schedules) and of the build of Rehearse. So no result that is out
// of date is used, and what studies and searches have in common is simulated once. Machines are
// read once (scenarios/readers/reader_cache.h), and so are groups of their ranks
// (scenarios/playing/group_memories.h). An Engine may be used from several threads; what it returns
// does not depend on their number.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/evaluating/changes.h"
#include "scenarios/playing/group_memories.h"
#include "scenarios/playing/layer_memory.h"
#include "scenarios/readers/reader_cache.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/progress.h"
#include "sim/engine/timeline.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

std::string ThisBuild();  // version and commit

// Where a finished point is kept.
struct EvaluationKey {
  std::string study;
  std::string point;
  Changes parameters = {};  // what makes it this point
  std::optional<double> calibrated = {};
};

struct Evaluation {
  std::vector<Result> results;  // of each of its scenarios; empty if it is impossible
  std::string error;            // why
  std::string hash;             // "" if a scenario could not be read, or nothing is hashed
  std::string device = {};      // the first one's
  bool kept = false;            // not simulated, because it was kept
};

// The rehearse.result.v1 object of an evaluation; that of a second scenario is under "minus".
nlohmann::ordered_json ResultJson(const std::vector<Result>& results);
// ... and back: what the JSON has; none if it is not what that writes.
std::vector<Result> ResultsOf(const nlohmann::ordered_json& json);

// Keeps finished points. May be called from several threads.
class PointStore {
 public:
  virtual ~PointStore() = default;
  // What is kept of a point with this hash; nothing if nothing useful is.
  virtual std::optional<Evaluation> Find(const EvaluationKey& key, const std::string& hash) = 0;
  virtual void Keep(const EvaluationKey& key, const Evaluation& evaluation) = 0;
};

struct EngineOptions {
  std::vector<PointStore*> stores = {};  // asked in order; each gets what the others lack
  bool again = false;                    // kept points are not used
  bool allow_out_of_memory = false;
  bool hash = true;  // points and timelines; otherwise their hashes are "", and stores not asked
  // A point that keeps too much memory is not planned to the end, and its error is a short one.
  // ErrorOf() has the full one.
  bool bounds_memory = false;
  std::string build = ThisBuild();
  std::function<bool()> is_stopped = [] { return false; };
};

class Engine {
 public:
  explicit Engine(EngineOptions options) : options_(std::move(options)) {
    CHECK(options_.hash || options_.stores.empty());
    CHECK(!options_.bounds_memory || options_.stores.empty());
  }

  // Throws Error if the scenario is impossible.
  Scenario Read(const JsonDocument& document);
  // Throws Error if it is impossible, Stopped when it is stopped. `tell` is called with the
  // fraction that is done, from 0 to 1.
  Result Play(const Scenario& scenario, const std::function<void(double)>& tell = {});
  // The same for a scenario that is played in any case with all of its layers; `look` is shown what
  // each rank does.
  using Look = std::function<void(const Schedule&, const Timeline&, const SpansByRank&)>;
  Result PlayInView(const Scenario& scenario, const Look& look);
  // One document or two. Throws Stopped when it is stopped before the point is done.
  Evaluation Evaluate(const EvaluationKey& key, const std::vector<JsonDocument>& documents,
                      const std::function<void(double)>& tell = {});
  // The same without stores.
  Evaluation EvaluateApart(const std::vector<JsonDocument>& documents);
  // Why the document is impossible; "" if it is not. Is not stopped.
  std::string ErrorOf(const JsonDocument& document);

 private:
  Result PlayWhole(const Scenario& scenario, ProgressObserver* observer, GroupMemory* memory,
                   const Look& look);
  Evaluation ReadAndPlay(const EvaluationKey* key, const std::vector<JsonDocument>& documents,
                         const std::function<void(double)>& tell);
  std::string HashOf(const std::vector<JsonDocument>& documents,
                     const std::vector<Scenario>& scenarios) const;
  bool Find(const EvaluationKey& key, Evaluation* evaluation) const;

  const EngineOptions options_;
  ReaderCache clusters_;
  GroupMemories memories_;
  LayerMemory layers_;
};

}  // namespace rehearse
