// From a scenario to what is played: the one front of run, execute, explain, trust, calibrate and
// sweep.
//
// Whoever wants the schedule of a scenario takes it from here, so that all of them play the same
// one: planned, its kernels tuned, its collectives pinned, and checked.
#pragma once

#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// Throws Error for what cannot be planned, pins that fit nothing, schedules that cannot be played,
// and, unless the scenario allows it, for what does not fit the devices' memory. In the order of
// the scenario's.
std::vector<Job> Prepare(const Scenario& scenario, ProgressObserver& observer = NoObserver());

// The job of a scenario that has one, for commands that cannot do with several: Error that names
// `command`.
Job PrepareOne(const Scenario& scenario, const char* command,
               ProgressObserver& observer = NoObserver());

}  // namespace rehearse
