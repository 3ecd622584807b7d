// What a backend can run: schedules that were written to show something name no memory for what
// they send.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

// The same schedule with an op for each copy of what repeats, and made-up fp32 memory for ops that
// communicate and name no buffers: as large as their bytes, and shared by the ops of a stream. A
// schedule that needs neither comes back as it is. Throws Error for all-to-alls that give sizes of
// pairs and no buffers.
Schedule Executable(const Schedule& schedule);

// Ops of a fixed duration that nobody says how to compute: they are executed by waiting.
bool IsWaitedFor(const Compute& compute);
bool WaitsForOps(const Schedule& schedule);
// Ops that communicate and name no buffers.
bool MakesUpMessages(const Schedule& schedule);

}  // namespace rehearse
