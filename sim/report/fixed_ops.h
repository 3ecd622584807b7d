// What ops of a fixed time are, told by another timeline of the same step.
//
// In a schedule that was imported from a trace, kernels take as long as they took, and so does
// communication whose partners are not known: what they are is not kept. The timeline that was
// imported from the same trace says it.
#pragma once

#include "sim/report/timeline_record.h"

namespace rehearse {

// Waits that stand for nothing but a gap have this name and kind.
inline constexpr const char* kWaitKind = "wait";

// Gives ops of kinds "fixed" and "wait" the kind and axis of the op in `other` that has the same
// name, phase and layer, is on the same rank, and has the same place among those. Others stay.
void TellFixedOps(const TimelineRecord& other, TimelineRecord* record);

}  // namespace rehearse
