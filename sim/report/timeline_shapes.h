// The tables of a timeline's file (sim/report/timeline_record.h says what they mean).
#pragma once

#include <cstdint>

#include "sim/base/json_shape.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// In the order of the table's choices.
inline constexpr Phase kRecordedPhases[] = {Phase::kForward, Phase::kRecompute, Phase::kBackward,
                                            Phase::kSynchronize, Phase::kUpdate};

inline constexpr int64_t kMostRecordedOps = 1 << 24;
inline constexpr int64_t kMostRecordedChannels = 1 << 16;

const ObjectShape& TimelineShape();
const ObjectShape& RecordedRoleShape();
const ObjectShape& RecordedOpShape();
const ObjectShape& RecordedStepShape();

}  // namespace rehearse
