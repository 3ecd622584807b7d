// A scenario run for real: its schedule on the ranks of a transport, what was measured, and whether
// the numbers are those of the serial computation.
//
// The result (schema rehearse.execution.v1) says how it was run and holds the median step's
// rehearse.result.v1 without the simulator's cost:
//
//   { "schema": "rehearse.execution.v1", "scenario": "...", "ranks": 4, "backend": "cpu",
//     "transport": "threads", "collectives": "own", "streams": "blocking", "arithmetic": "fp32",
//     "seed": 1, "given": {...}, "notes": ["..."], "libraries": "...", "host": {...},
//     "environment": {...},
//     "gpu": {..., "nccl_profiler": {"interface": 5}},
//     "warm_up_seconds": [...], "repeat_seconds": [...], "fastest_step_seconds": ...,
//     "lost": {"share": 0.02, "by_repeat": [...], "involuntary_switches": 17,
//              "repeats_left_alone": 4},
//     "memory": {"rank": 0, "parameters_bytes": ..., "gradients_bytes": ...,
//                "optimizer_bytes": ..., "activations_bytes": ..., "buffers_bytes": ...,
//                "host_bytes": ..., "predicted_bytes": ..., "as_predicted": true},
//     "timing": {"timed_step_seconds": ..., "untimed_step_seconds": ..., "cost": 0.01},
//     "cuda_graph": {"step_seconds": ..., "step_seconds_without": ..., "gain": 0.02},
//     "clocks": [{"rank": 1, "offset_nanoseconds": 12, "drift_nanoseconds_per_second": 3,
//                 "round_trip_nanoseconds": 700, "applied": false}],
//     "check": {"passed": true, "tolerance": 1e-10, "loss": ..., "serial_loss": ...,
//               "loss_difference": ..., "worst_gradient": ..., "worst_parameter": ...,
//               "arrays": [...]},
//     "training": {"arithmetic": "fp64", "losses": [...], "serial_losses": [...],
//                  "largest_difference": 1e-14},
//     "result": {...} }
//
// "lost" is what other programs took of the repeats' time; not on GPUs, which keep their own.
// "memory" is what arrays took of the rank that had most, counted in the first step at each op
// (real/backends/live_memory.h); not on GPUs.
// "given" is the scenario as it was read; older files lack it. "gpu" is there only on GPUs; its
// profiler may be {"interface": 0, "why_not": "..."}: then the result's "collectives" and the
// timeline's ops do not say what NCCL chose. "timing" is there if timing ops costs something,
// "cuda_graph" with --cuda-graph: medians of the host's wall times. "check" is there with --check,
// "training" with --steps: the loss of each step, and of the same steps on one rank if the network
// is known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "real/execution/check.h"
#include "real/execution/execute.h"
#include "real/transports/transport.h"
#include "scenarios/readers/scenario.h"
#include "sim/report/result.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

// A double has 16 digits; sums in another order, through a few layers, cost at most six of them.
inline constexpr double kCheckTolerance = 1e-10;
// fp32 has 7, and Adam's first step divides a gradient by its own size: if that is only rounding, a
// parameter moves by a learning rate one way or the other.
inline constexpr double kGpuCheckTolerance = 2e-3;

// Whether it says which network its step belongs to; schedules do not.
bool HasNetwork(const Scenario& scenario);
// The same network and batch on one rank, in the same parts, as dropout draws anew for each
// micro-batch and chunk.
Schedule PlanSerially(const Scenario& scenario);

struct TrainedSteps {
  DType arithmetic = DType::kFp64;
  std::vector<double> losses;         // by step
  std::vector<double> serial_losses;  // of the same steps on one rank; empty: not known

  double LargestDifference() const;  // relative
};

struct ExecutedScenario {
  std::string scenario;
  std::shared_ptr<const nlohmann::json> given;  // Scenario::given
  std::string backend;                          // "cpu", "cuda"
  std::string transport;                        // "threads"
  std::string collectives;                      // "own"
  DType arithmetic = DType::kFp32;
  uint64_t seed = 0;
  std::vector<std::string> notes;  // what a reader of the numbers has to know
  Execution execution;
  std::optional<CheckReport> check;
  double check_tolerance = kCheckTolerance;
  std::optional<TrainedSteps> training;
  nlohmann::ordered_json gpu;  // libraries, device and environment; null on CPUs
  // Why it is not known how collectives were run; "" if it is.
  std::string choices_missing;
  bool representative = true;          // false if times mean nothing: ranks shared a GPU
  nlohmann::ordered_json environment;  // when the steps were done (real/backends/host.h)
  Result result;                       // of the median step
};

// Remarks about the numbers: arithmetic that is not the schedule's, more ranks than cores.
std::vector<std::string> ExecutionNotes(const Schedule& schedule, const Transport& transport,
                                        DType arithmetic);

// What to think of the times where other programs took more than 5 % of them; else "".
std::string NoteOnLoss(const Execution& execution);

// Fills `result`, `notes` and `environment` from the rest.
void Describe(const Scenario& scenario, const Schedule& schedule, const Transport& transport,
              ExecutedScenario* executed);

nlohmann::ordered_json ToJson(const ExecutedScenario& executed);
// "step,loss,serial_loss", a line for each step.
std::string ToCsv(const TrainedSteps& training);
std::string ToText(const ExecutedScenario& executed, bool color);
// All steps, warm-ups first, with the ops as they were run.
TimelineRecord RecordOf(const ExecutedScenario& executed);

}  // namespace rehearse
