// Why does a step take as long as it does? What the step waited for, which communication is
// exposed, which links held transfers back and who shared them, what would help: "rehearse
// explain".
//
// Times of the critical path and of bottlenecks are those of the ranks and links that are named
// (one of each class if the scenario is folded); exposure is the mean over all ranks, as in
// Result. Ranks here are devices of the cluster, even if a placement or jobs leave some spare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/explaining/sensitivity.h"
#include "scenarios/explaining/stage_changes.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/network_picture.h"
#include "sim/report/op_name.h"
#include "sim/report/result.h"

namespace rehearse {

// The step waited for this.
struct PathStep {
  OpName name;
  uint32_t rank = 0;
  Phase phase = Phase::kForward;
  int32_t layer = -1;
  int32_t micro_batch = 0;
  Seconds begin;
  Seconds end;
};

struct PathShare {
  std::string name;
  uint32_t steps = 0;
  Seconds seconds;
};

struct NamedSlack {
  OpName name;
  uint32_t runs = 0;
  Seconds least;   // how much longer any run could take without the step ending later
  Seconds median;  // ... and half of the runs
};

struct NamedExposure {
  OpName name;
  double operations = 0;  // per rank
  Seconds seconds;
  Seconds exposed;
};

// The link that held the transfers of an op back the longest, and for what share of their time.
struct NamedBottleneck {
  OpName name;
  std::string link;
  std::string link_kind;
  uint32_t transfers = 0;
  double share = 0;  // mean over them
};

struct SharingOp {
  OpName name;
  uint32_t most_at_once = 0;  // transfers over the link
  Bytes bytes;
};

struct ContendedLink {
  std::string name;
  std::string kind;
  BytesPerSecond capacity;
  double utilization = 0;  // over the whole step
  Seconds held_back;       // time in which it held anything back
  uint32_t most_at_once =
      0;  // transfers over it at that time: 1 is a bottleneck without contention
  std::vector<SharingOp> shared_by;  // most bytes first
};

struct Explanation {
  Result result;
  bool of_jobs = false;  // the "step" lasts until the last of them has ended
  std::vector<PathStep> path;
  std::vector<PathShare> path_by_kind;       // longest first
  std::vector<PathShare> path_by_op;         // longest first
  std::vector<PathShare> path_by_layer;      // first layer first; "outside the layers" last
  std::vector<NamedSlack> slack;             // least first
  std::vector<NamedExposure> exposed;        // most exposed first
  std::vector<NamedBottleneck> bottlenecks;  // by op
  std::vector<ContendedLink> links;          // longest first; at fidelity packet, of fluid flows
  std::optional<NetworkPicture> network;     // at fidelity packet
  std::vector<Sensitivity> sensitivities;    // shortest step first
  std::vector<StageChange> stages;           // of a pipeline: other ones
  std::vector<std::string> left_out;         // what was not simulated of these two, if stopped
};

// Simulates the scenario with everything recorded, and once more for each sensitivity. Throws as
// PlayScenario() does. If the observer throws Stopped during the sensitivities, only these end.
Explanation Explain(const Scenario& asked, ProgressObserver& observer = NoObserver());

// What the step of the scenario's only job waited for, by kind, the longest first: one simulation
// with the tasks recorded, without links and without what would help. Of steps with many ops, which
// would take gigabytes (Llama 3 405B in 16 stages on 1,024 GPUs: 9.4 GB and 55 s), by closed forms.
// Throws as Explain() does.
inline constexpr uint64_t kMostOpsOfPaths = 150'000;  // of all roles
std::vector<PathShare> CriticalKinds(const Scenario& asked,
                                     ProgressObserver& observer = NoObserver());
// "weight gradient 24 %, forward 24 %, backward 24 %": those that most of the path is.
std::string ToLine(const std::vector<PathShare>& kinds);

// The object has the schema rehearse.explanation.v1.
nlohmann::ordered_json ToJson(const Explanation& explanation);
// Prints what a person reads, at most `rows` of each list. The text ends with a newline.
std::string ToText(const Explanation& explanation, size_t rows, bool color);

}  // namespace rehearse
