// How long a step takes in practice: equal devices are not equally quick, and in a synchronous step
// they all wait for the slowest.
#pragma once

#include <optional>

#include "scenarios/readers/scenario.h"
#include "sim/report/result.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// The slowest rank computes F times as long (topology/devices/speed_spread.h), and all others wait:
//   step + (F - 1)·compute,
// which is exact if no more communication hides behind the longer kernels, and otherwise a little
// too much. Nothing if it is not known how far devices differ, if their times were measured, or if
// the scenario itself says which devices are slow.
std::optional<TypicalStep> TypicalOf(const Result& result, const Scenario& scenario,
                                     const Job& job);

}  // namespace rehearse
