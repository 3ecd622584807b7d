// The jobs of a scenario as it asks for them: one that it describes itself, or several that share
// the cluster.
//
//   "jobs": [{"scenario": "a.json",     a file, relative to the one that names it, or an object;
//                                       or "schedule": likewise (sim/schedule/schedule_json.h)
//             "placement": "0-63",      scenarios/readers/placement.h; "block" and "round-robin"
//                                       choose among devices that no other job lists or was given
//             "start": "0s",            optional; before it nothing of the job begins
//             "repeat": 3,              optional, 1; whole steps, back to back
//             "name": "first"}, ...]    optional; else that of its scenario or schedule
//
// What a job's scenario says about its step belongs to the job: model, training, strategy, and the
// algorithm, protocol and collectives of its simulator. What it says about a machine (cluster,
// calibration, edits, placement, and the other keys of its simulator) is not used; the scenario
// that lists the jobs decides that. Algorithms that the latter names are for all jobs, before their
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/readers/busy_cluster.h"
#include "scenarios/readers/collective_pins.h"
#include "sim/base/json_reader.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/pipeline.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

class JsonDocument;
class ReaderCache;

// What a step is planned from.
struct Workload {
  std::shared_ptr<const Network> network;  // of the model, for this training
  Training training;
  Strategy strategy;  // of each rank of the pipeline
  std::optional<StagePipeline> pipeline = std::nullopt;

  uint32_t ranks() const { return strategy.mesh.size() * (pipeline ? pipeline->places.ranks : 1); }
};

struct JobRequest {
  std::string name;
  std::variant<Schedule, Workload> work;
  std::vector<CollectivePin> collective_pins;
  SoftwareUse software;             // of a workload that names one
  std::vector<uint32_t> placement;  // rank -> device
  // Where others leave these devices: the draw of its seed, or of seed 0.
  std::optional<BusyCluster> busy;
  Seconds start;
  uint32_t repeat = 1;
  // Mean over the job's devices, before edits: what utilisation refers to. Zero without arithmetic.
  FlopsPerSecond nominal_peak;
  Place place;                     // for errors that planning finds
  Place attention_place;           // of a training's attention, or of the training
  std::vector<Place> role_places;  // of a schedule: where the file has its roles
};

// The type whose peak utilisation refers to: a training's own precision, whatever its products are
// done in; of a schedule the type of most of its arithmetic, nothing if it has none.
std::optional<DType> PeakTypeOf(const JobRequest& request);

const ObjectShape& JobShape();

// From a scenario's root: its own step on all devices, or on those of its "placement"; or its
// "jobs". Throws Error for mistakes, including steps that do not fit the cluster and jobs that want
// the same device. `nominal` is the cluster before calibrations and edits.
// Networks come from the cache if there is one.
std::vector<JobRequest> ReadJobRequests(const JsonReader& root, const Cluster& cluster,
                                        const Cluster& nominal, ReaderCache* cache = nullptr);

// The step of a scenario's document, on no devices yet, whatever its cluster and its own "jobs".
JobRequest ReadWorkOn(JsonDocument document, const Cluster& cluster);

// A schedule, of whose document this is the root, on these devices, rank by rank; on all if none
// are named. Throws Error unless there are as many as ranks.
JobRequest RequestOf(const JsonReader& schedule, const Cluster& cluster, const Cluster& nominal,
                     const std::vector<uint32_t>& devices);

}  // namespace rehearse
