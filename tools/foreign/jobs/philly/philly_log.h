// Microsoft's Philly, its log of jobs (cluster_job_log): a list in JSON, read job by job.
//
// Keys as in github.com/msr-fiddle/philly-traces, README.md: a job has attempts, each from
// start_time to end_time on the GPUs in its "detail". It runs as long as all its attempts together;
// what lies between them is not its time. A last attempt without an end was still running when the
// log was taken; others without a start or an end are mistakes of the logging, and are passed over.
// Times have no zone: they are taken as they stand.
#pragma once

#include <string>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

// Throws Error (file, line, JSON pointer) for what is no such log.
ImportedJobs ReadPhilly(const std::string& path, const JobWindow& window = {});

}  // namespace rehearse
