// In which order the ops of a schedule begin: in the simulator, and on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "real/execution/execute.h"
#include "scenarios/readers/scenario.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The ops of each stream of each rank, as they began; those of one instant in list order.
std::vector<std::vector<uint32_t>> OrderOfStreams(const Schedule& schedule,
                                                  const Timeline& timeline);

// The schedule on the scenario's machine, every rank by itself.
Timeline Simulated(const Schedule& schedule, const Scenario& scenario);
// One step, every rank a thread.
Timeline Measured(const Schedule& schedule, StreamUse streams);

}  // namespace rehearse
