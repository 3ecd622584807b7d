// A scenario, as a JSON file describes it: one training step of one model with one strategy on one
// cluster, or several jobs that share the cluster. `rehearse schema scenario` prints what it may
// say, from the tables of scenarios/readers/scenario_shape.h.
//
// Sizes of a strategy must be given, and its switches too unless the software sets them: nothing is
// silently defaulted (scenarios/readers/strategy_reader.h). `channels` 0 leaves their number to the
// channel search. `slowdown` replaces the devices' own, or their family's
// (topology/devices/overlap_costs.h): a kernel runs at 1/(1 + slowdown) while its device
// communicates; {} is none. `routing` and `queue_pairs` replace the fabric's own
// (topology/fabrics/routing.h says what each takes); if a step depends on a seed and none is given,
// it is the median one of 8 seeds (scenarios/playing/seeded_routes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "collectives/lowering/lower.h"
#include "scenarios/readers/job_request.h"
#include "scenarios/readers/memory_options.h"
#include "sim/base/input_record.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"
#include "topology/fabrics/fabric.h"
#include "topology/files/calibration.h"

namespace rehearse {

class ReaderCache;
struct ArrivalOptions;
struct CostOptions;
struct RunOptions;

struct Scenario {
  std::string name;
  std::string description;
  std::shared_ptr<const Cluster> cluster;
  std::vector<JobRequest> jobs;  // at least one
  bool lists_jobs = false;       // under "jobs": results are reported job by job, even for one
  LowerOptions lowering;
  FabricRouting routing;
  Place perturbation_place;           // for links that fail and leave no path
  std::vector<JsonChange> changes;    // to this file and those that it names, by --set and the like
  std::vector<InputFile> files = {};  // that were read because this file names them
  MemoryOptions memory = {};
  bool allow_out_of_memory = false;  // play a plan even if it does not fit the device
  // What was read, including changes by --set: results and timelines keep it under "given", so that
  // two of them can be compared. Of a schedule, only its name and cluster.
  std::shared_ptr<const nlohmann::json> given;
  std::shared_ptr<const RunOptions> run = {};           // null: of one step only
  std::shared_ptr<const CostOptions> costs = {};        // null: nobody asks
  std::shared_ptr<const ArrivalOptions> arrivals = {};  // null but for ReadQueueScenario()
};

// Throws Error (file, line, pointer, found, expected) for any mistake, including a mesh that does
// not fit the cluster. The machine and the network come from the cache if there is one.
Scenario ReadScenario(const JsonDocument& written, ReaderCache* cache = nullptr);

// Whether a scenario has "arrivals": jobs as they come (scenarios/readers/arrival_options.h).
bool HasArrivals(const JsonDocument& document);
// Reads such a scenario, which has no jobs yet; ReadScenario() refuses it. Throws as that does.
Scenario ReadQueueScenario(const JsonDocument& written);

// A schedule's document (sim/schedule/schedule_json.h) on these devices of a cluster, rank by rank;
// on all if none are named.
Scenario ScenarioOf(const JsonDocument& schedule, std::unique_ptr<Cluster> cluster,
                    const std::optional<Calibration>& calibration,
                    const std::vector<uint32_t>& devices = {});

}  // namespace rehearse
