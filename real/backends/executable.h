// Makes a schedule that a backend can run: schedules written as an illustration name no memory for
// what they send.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

// The same schedule with an op for each copy of what repeats, and made-up fp32 memory for ops that
// communicate but name no buffers: as large as their bytes, and shared by the ops of a stream. A
// schedule that needs neither is returned unchanged. Throws Error for all-to-alls that give sizes
// of pairs but no buffers.
Schedule Executable(const Schedule& schedule);

// Ops with a fixed duration and nothing to compute: they are executed by waiting.
bool IsWaitedFor(const Compute& compute);
bool WaitsForOps(const Schedule& schedule);
// Whether there are ops that communicate but name no buffers.
bool MakesUpMessages(const Schedule& schedule);

}  // namespace rehearse
