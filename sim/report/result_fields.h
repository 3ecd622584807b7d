// The table of result.json, of one step: it describes, writes and reads a Result. That of several
// jobs (scenarios/playing/jobs_fields.h) has some of its rows.
#pragma once

#include "sim/base/json_fields.h"
#include "sim/report/result.h"

namespace rehearse {

inline constexpr const char* kResultSchema = "rehearse.result.v1";

const Fields<Result>& ResultFields();
// A row for what was simulated, which commands add.
JsonKey GivenRow();

}  // namespace rehearse
