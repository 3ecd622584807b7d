// What a step takes in practice: equal devices are not equally quick, and those of a synchronous
// step wait for the slowest.
#pragma once

#include <optional>

#include "scenarios/readers/scenario.h"
#include "sim/report/result.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// The slowest rank computes F times as long (topology/devices/speed_spread.h), and everybody waits:
//   step + (F - 1)·compute,
// which is exact where no more communication hides behind the longer kernels, and else a little too
// much. Nothing where it is not known how far devices differ, where their times were measured, and
// where the scenario says itself who is slow.
std::optional<TypicalStep> TypicalOf(const Result& result, const Scenario& scenario,
                                     const Job& job);

}  // namespace rehearse
