// From a scenario to what is played: the one front of run, execute, explain, trust, calibrate and sweep.
//
// Whoever wants the schedule of a scenario takes it from here, so that all of them play the same one: planned, its
// kernels tuned, its collectives pinned, and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// A schedule, and where and when it is played.
struct Job {
  std::string name;
  Schedule schedule;                // of one step
  std::vector<uint32_t> placement;  // rank -> device of the cluster
  Seconds start;
  uint32_t repeat = 1;  // whole steps, back to back
};

// Throws Error for what cannot be planned, pins that fit nothing, schedules that cannot be played, and, unless the scenario
// allows it, for what does not fit the devices' memory.
std::vector<Job> Prepare(const Scenario& scenario);

}  // namespace rehearse
