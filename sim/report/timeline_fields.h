// The tables of a timeline's file (sim/report/timeline_record.h says what they mean).
#pragma once

#include <cstdint>

#include "sim/base/json_fields.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr Phase kRecordedPhases[] = {Phase::kForward, Phase::kRecompute, Phase::kBackward,
                                            Phase::kSynchronize, Phase::kUpdate};

// All but the steps: their spans, of which there may be millions, are written as text and read from
// it (sim/report/timeline_file.h), because values of JSON would take gigabytes.
const Fields<TimelineRecord>& TimelineFields();
const ObjectShape& RecordedStepShape();

}  // namespace rehearse
