// The table of result.json, of several jobs: it is written, not read.
#pragma once

#include "scenarios/playing/jobs_result.h"
#include "sim/base/json_fields.h"

namespace rehearse {

inline constexpr const char* kJobsSchema = "rehearse.jobs.v1";

const Fields<JobsResult>& JobsResultFields();

}  // namespace rehearse
