// From a scenario to what is played: the common front end of run, execute, explain, trust,
// calibrate and sweep.
//
// They all get the schedule of a scenario from here, and so play the same one: planned, with
// kernels tuned and collectives pinned, and checked (but for steps that stand for ones with more
// layers: scenarios/playing/few_layers.h).
#pragma once

#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/schedule/jobs.h"
#include "workloads/planner/planner.h"

namespace rehearse {

// In the order of the scenario's jobs. Throws Error for what cannot be planned, for pins that fit
// nothing, for schedules that cannot be played and, unless the scenario allows it, for what does
// not fit the devices' memory. Steps without a pipeline are shown to `check_kept`.
std::vector<Job> Prepare(const Scenario& scenario, ProgressObserver& observer = NoObserver(),
                         const KeptCheck& check_kept = {});

// The job of a scenario with only one, for commands that cannot handle several: throws Error that
// names `command`.
Job PrepareOne(const Scenario& scenario, const char* command,
               ProgressObserver& observer = NoObserver());

}  // namespace rehearse
