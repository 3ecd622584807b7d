// `rehearse search`: which configuration of a scenario is the best?
//
// A method (walk.h) walks the space (scenarios/searching/search_space.h). Each point that is looked
// at is read as a scenario; impossible ones are counted by reason, the others get a number from a
// formula: a paper's model of its communication (scenarios/playing/paper_models.h; where points
// differ only in sizes, none is read: scenarios/searching/space_formula.h), or the simulator's
// closed forms without contention. The simulation decides: with "decide": "both", the
// formula's best are simulated, as many as "keep" says, then the neighbours of the best one until
// none is better (formulas know no overlap); with "simulation", all are. Large spaces, and those of
// scenarios without a strategy (wide_space.h), have a formula that takes microseconds
// (composed_step.h), and one point is simulated within two seconds. What a search finds does
// not depend on the number of threads, unless "seconds" ends it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/evaluating/engine.h"
#include "scenarios/evaluating/shard.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/searching/objective.h"
#include "scenarios/searching/point_run.h"
#include "scenarios/searching/search_space.h"
#include "scenarios/searching/walk.h"
#include "sim/base/json_document.h"
#include "sim/base/progress.h"

namespace rehearse {

// What the scenario says of it; the formula is the one that "auto" stands for.
struct Search : SearchOptions {
  std::string name;  // the scenario's
  JsonDocument scenario;
  SearchSpace space;
  std::vector<Objective> objectives;  // one, or two with their Pareto front
  Rates rates;
  std::string currency_of_costs = {};  // of the scenario's "costs"; "" if it has none
  double tokens_of_run = 0;            // of the scenario's "run"; 0 if it has none
  std::optional<size_t> per_axis;      // the axis that "per" means
  bool is_wide = false;  // the scenario has no strategy (scenarios/searching/wide_space.h)
  std::vector<SpacePoint> from = {};  // where walks begin, as far as they may: what comes first

  // GPUs of each cluster.
  uint32_t MostRanks() const { return gpus.value_or(UINT32_MAX); }
};

// Throws Error (file, line, pointer, found, expected).
Search ReadSearch(const JsonDocument& written);

// The result of a point's simulation.
struct SimulatedPoint {
  std::vector<double> values;  // by objective
  Seconds step;
  Seconds compute;
  Seconds idle;
  std::vector<std::pair<std::string, Seconds>> exposed;  // by axis
  double model_flops_utilization = 0;
  Bytes memory;           // that the fullest GPU needs, driver and libraries too
  Bytes memory_capacity;  // of that GPU; 0 if unknown
  std::optional<TypicalStep> typical;
  std::optional<Trust> trust;
  std::string busiest_link;
  double busiest_share = 0;
  uint32_t devices = 0;  // that the step keeps busy
  double tokens_per_second = 0;
  std::string token_name;
  // For a million tokens, in the price's currency and in kWh; nothing where no price is said, or no
  // power is known.
  std::optional<double> money;
  std::optional<double> energy;
  std::optional<PointRun> run;  // with a "run"
  // Of the bests: what the step waited for (scenarios/explaining/explanation.h), or "".
  std::string waits_for = {};
};

struct FoundPoint {
  SpacePoint point;
  std::optional<double> formula;  // seconds, or the first objective for closed forms
  std::optional<SimulatedPoint> simulated;
  bool on_front = false;  // with two objectives: no other point is better in both
};

struct ExcludedPoints {
  size_t points = 0;
  std::string example;  // the first one's whole message
};

// With "per": what was found with one choice of its axis.
struct FoundGroup {
  std::string name;
  std::optional<size_t> best;  // in FoundPoints::points; nothing if none is possible
  std::map<std::string, ExcludedPoints> excluded;  // by reason
  size_t looked_at = 0;
  size_t simulated = 0;
};

struct FoundPoints {
  // Those that are possible: first the simulated ones, the best first; then the others by the
  // formula.
  std::vector<FoundPoint> points;
  std::map<std::string, ExcludedPoints> excluded;  // by reason
  size_t looked_at = 0;
  size_t simulated = 0;
  // From the formula: the worst number that was kept, the best that was not simulated.
  std::optional<double> worst_kept;
  std::optional<double> best_left;
  bool was_stopped = false;
  bool was_too_slow = false;  // "seconds" were over
  Shard shard;
  std::vector<FoundGroup> groups;  // with "per", in the order of its axis
};

struct SearchRun {
  unsigned threads = 0;  // 0: as many as the machine has
  ProgressObserver* observer = &NoObserver();
  std::function<bool()> is_stopped = [] { return false; };
  bool all_formulas = false;  // also if all are simulated: for ComputeQuality()
  bool allow_out_of_memory = false;
  bool explains_bests = false;  // SimulatedPoint::waits_for: each is played once more, as a whole
  std::vector<PointStore*> stores = {};  // what is there is not simulated again
  // Only these simulations. Formulas choose as usual; what follows from simulations (neighbours of
  // the best, others for those that prove impossible) is left to a search with all the results.
  Shard shard = {};
  Leases* leases = nullptr;  // likewise, and of these only those that it gets

  bool IsPart() const { return !shard.IsWhole() || leases != nullptr; }
};

// Throws Error if nothing is possible (counting what excludes by reason), and if there is a shard
// but nothing to share. Throws Stopped when it is stopped before a point is done. A shard may find
// nothing.
FoundPoints RunSearch(const Search& search, const SearchRun& run);

// The scenario of a point, for `rehearse run`.
JsonDocument ScenarioOf(const Search& search, const SpacePoint& point);

}  // namespace rehearse
