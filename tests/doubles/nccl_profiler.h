// NCCL's side of its profiler plugin interface: finds a plugin as NCCL does, and reports every
// operation to it.
//
// NCCL_PROFILER_PLUGIN names it, STATIC_PLUGIN means the running program; the newest of its tables
// that this version of NCCL would know counts. Events are laid out by offsets, as in NCCL 2.28.9's
// debug information, not by our structs. What NCCL chooses is made up: all-reduces up to kTreeBytes
// go by TREE and LL on one channel, all else by RING and SIMPLE on two, messages on one.
#pragma once

#include "tests/doubles/nccl_meeting.h"

namespace rehearse::gpu_double {

inline constexpr uint64_t kTreeBytes = 2048;

// When a communicator has been made, and before it is gone.
void GreetProfiler(Communicator* communicator);
void DismissProfiler(Communicator* communicator);
// On the thread that launches it. Communicators of one rank report nothing, as in NCCL.
void TellProfiler(const Communicator& communicator, const Operation& operation);

}  // namespace rehearse::gpu_double
