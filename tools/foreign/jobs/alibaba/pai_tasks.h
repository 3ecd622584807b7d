// Alibaba's PAI of 2020, its table of tasks (pai_task_table.csv, which comes without names of its
// columns): a job is what has the same job_name. It holds the GPUs of all instances of all its
// tasks, from when the first of these tasks was launched to when the last ended.
//
// Columns as in github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/README.md: plan_gpu is in
// hundredths of a GPU for each of inst_num instances; times are in seconds, 0 for none. When jobs
// were submitted, and by whom, is in its table of jobs (pai_job_table.csv), which may be given
// beside; without it, jobs count as submitted when they were launched.
#pragma once

#include <string>
#include <vector>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

// The table of tasks, and that of jobs where it is given. Throws Error (file, line) for what is no
// such table.
ImportedJobs ReadPai(const std::vector<std::string>& paths, const JobWindow& window = {});

}  // namespace rehearse
