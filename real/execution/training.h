// Several steps one after the other, each on the parameters that the last one left: does a strategy
// learn what one rank learns?
//
// The batch is the same in every step, so the losses of a network that learns must fall: it learns
// that batch by heart. Dropout, if there is any, draws the same in every step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "real/backends/backend.h"
#include "real/transports/transport.h"
#include "sim/base/progress.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct TrainingOptions {
  uint32_t steps = 0;
  uint64_t seed = 1;
  DType arithmetic = DType::kFp64;       // or fp32
  BackendFactory backend = nullptr;      // nothing: the CPU in `arithmetic`
  ProgressObserver* observer = nullptr;  // told of the steps, by rank 0
  // Asked by rank 0 after each step: whether it was the last one. All ranks have one, or none.
  std::function<bool()> is_stopped = nullptr;
};

// The loss of each step before its update, on rank 0; empty on other ranks. A training that was
// stopped has fewer losses, but one at least. All ranks of the transport call this. Throws as
// Execute() does (real/execution/execute.h).
std::vector<double> Train(const Schedule& schedule, Transport& transport,
                          const TrainingOptions& options);

// The same for a schedule with one rank, by this thread alone, on the CPU.
std::vector<double> TrainSerially(const Schedule& serial, const TrainingOptions& options);

}  // namespace rehearse
