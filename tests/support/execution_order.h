// In which order the ops of a schedule begin: in the simulator, and on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "real/execution/execute.h"
#include "scenarios/readers/scenario.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The ops of each stream of each rank, in the order in which they began; those of one instant are
// in list order.
std::vector<std::vector<uint32_t>> OrderOfStreams(const Schedule& schedule,
                                                  const Timeline& timeline);

// Plays the schedule on the scenario's machine, with every rank played separately.
Timeline Simulated(const Schedule& schedule, const Scenario& scenario);
// Runs one step, with a thread for each rank.
Timeline Measured(const Schedule& schedule, StreamUse streams);
// What rank 0 knows after one step on threads, without warming up.
Execution OnThreads(const Schedule& schedule, StreamUse streams);

}  // namespace rehearse
