// A Schedule from a step that PyTorch's profiler measured.
//
// Each stream of the device is a stream; kernels and copies take as long as they took. What a
// kernel waited for is not in a trace, and is inferred: if it was launched before the last op of
// another stream had ended and began after that, it waited for it; the rest of the gap before it is
// a wait as long as measured (the host, the launch). Collectives and messages whose sizes and
// groups are known are simulated anew; others are waits as long as they took.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "tools/foreign/traces/kineto/kineto_extrapolate.h"
#include "tools/foreign/traces/kineto/kineto_steps.h"

namespace rehearse {

// Checked. `job` says which ranks there are and how they meet, `later` is as AlignClocks() has it.
Schedule ScheduleOfKineto(const KinetoRanksOfStep& ranks, const KinetoJob& job,
                          const KinetoStep& step, const std::vector<int64_t>& later,
                          std::vector<std::string>* remarks);

}  // namespace rehearse
