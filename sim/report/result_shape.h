// The tables of result.json, of one step and of several jobs. They are written, not read: a test
// compares them with what is written.
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

inline constexpr const char* kResultSchema = "rehearse.result.v1";
inline constexpr const char* kJobsSchema = "rehearse.jobs.v1";

JsonShape ResultFileShape();  // one of the two
const ObjectShape& ResultShape();
const ObjectShape& JobsResultShape();

}  // namespace rehearse
