// A scenario, as a JSON file describes it: one training step of one model with one strategy on one
// cluster, or several jobs that share the cluster.
//
//   {
//     "name": "...", "description": "...",          description is optional
//     "cluster": "perlmutter:nodes=4",              preset, preset with changes, file, or graph
//     "model": {"preset": "gpt-20b"},               or its numbers, or another kind:
//                                                   scenarios/readers/model_reader.h
//     "training": {"batch": 16, "sequence": 2048,   sequences a step and tokens a sequence
//                  "micro_batches": 1,              optional, 1
//                  "recomputation": "full",         none, selective (of unfused attention) or full
//                  "attention": "fused",            optional: what the device's software usually
//                                                   runs; or "flash-1", "flash-2", "flash-3",
//                                                   "cudnn", "efficient" (xformers) as the device
//                                                   can; "unfused" stores s² scores a head
//                  "precision": "bf16",             optional; "fp32": arithmetic, parameters too
//                  "gradients": "fp32",             optional; "bf16" to sum and to keep them so
//                  "tuned_kernels": false,          optional; each product's fastest of NN, NT, TN
//                  "kernels": "fused",              optional, and the rest; or "eager", "compiled"
//                  "optimizer": "fused",            or "foreach", "loop"
//                  "moments": "fp32",               Adam's; or "bf16"
//                  "cross_entropy": "unfused",      or "fused"
//                  "expert_kernels": "separate",    or "fused", "sequential"
//                  "permutation": "unfused",        or "fused"
//                  "accumulation": "separate",      or "fused"
//                  "dropout": true, "metrics": 0, "host_launch": "0s"},
//     "strategy": {"kind": "4d", "column": 2, "row": 2, "depth": 4, "data": 1,
//                  "transpose_alternate_layers": true, "overlap_all_reduce": true,
//                  "overlap_reduce_scatter": true, "overlap_all_gather": true,
//                  "cached_layers": 28},            other kinds: workloads/README.md
//     "pipeline": {"stages": 8, "schedule": "1f1b"}, optional; the strategy's mesh is that of one
//                                                   rank: scenarios/readers/pipeline_reader.h
//     "software": "fsdp-eager",                     optional; sets switches of training and
//                                                   strategy: scenarios/readers/software.h
//     "placement": "block",                         optional: scenarios/readers/placement.h;
//                                                   without it as many ranks as devices
//     "calibration": "mine.json",                   optional: topology/files/calibration.h
//     "device_points": "mine.csv",                  optional: topology/files/device_points_file.h
//     "edits": [{"links": "node3/nic*",             optional what-ifs: topology/files/edits.h
//                "bandwidth": "0.5x"}],
//     "simulator": {"fidelity": "fluid",            optional, every key of it as well
//                   "channels": 0,
//                   "algorithm": "auto",            how collectives run: as NCCL or RCCL chooses;
//                   "protocol": "auto",             "none": rings on bare links
//                   "nccl": "2.28", "nvls": true,   which release of NCCL chooses, from what
//                   "copy_engines": ["tensor"],     axes that slow no kernel down
//                   "collectives": [{"kind": "all-reduce", "axis": "data", "algorithm": "tree"}],
//                                                   scenarios/readers/collective_pins.h
//                   "routing": "ecmp", "queue_pairs": 4, "routing_seed": 0,
//                   "slowdown": {"gemm": 0, "attention": 0, "memory": 0, "communication": 0},
//                   "perturbation": {...}}          jitter, stragglers, links that fail:
//   }                                               scenarios/readers/perturbation.h
//
// Instead of model, training, strategy and placement: "jobs": [...]
// (scenarios/readers/job_request.h).
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
#include "sim/base/input_record.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"
#include "topology/fabrics/fabric.h"
#include "topology/files/calibration.h"

namespace rehearse {

class ReaderCache;

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
  bool allow_out_of_memory = false;   // play a plan even if it does not fit the device
  // What was read, including changes by --set: results and timelines keep it under "given", so that
  // two of them can be compared. Of a schedule, only its name and cluster.
  std::shared_ptr<const nlohmann::json> given;
};

// Throws Error (file, line, pointer, found, expected) for any mistake, including a mesh that does
// not fit the cluster. The machine and the network come from the cache if there is one.
Scenario ReadScenario(const JsonDocument& written, ReaderCache* cache = nullptr);

// A schedule's document (sim/schedule/schedule_json.h) on all devices of a cluster.
Scenario ScenarioOf(const JsonDocument& schedule, std::unique_ptr<Cluster> cluster,
                    const std::optional<Calibration>& calibration);

}  // namespace rehearse
