// Data races in a schedule: ops that touch the same memory in no defined order.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

// Throws Error, naming both ops and the buffer, when two ops of a role touch the same buffer, at
// least one of them writes it, and neither is ordered before the other by streams and `after`: a
// data race on the real machine. Returns quietly otherwise.
void CheckBuffers(const Schedule& schedule);

}  // namespace rehearse
