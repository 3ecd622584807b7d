// Alibaba's PAI of 2020, its table of tasks (pai_task_table.csv, which comes without names of its
// columns): a job is what has the same job_name. It holds the GPUs of all instances of all its
// tasks, from when the first of these tasks was launched to when the last ended.
//
// Columns as in github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/README.md: plan_gpu is in
// hundredths of a GPU for each of inst_num instances; times are in seconds, 0 for none. When jobs
// were submitted is in another table, so the time that they waited is not known.
#pragma once

#include <string>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

// Throws Error (file, line) for what is no such table.
ImportedJobs ReadPaiTasks(const std::string& path, const JobWindow& window = {});

}  // namespace rehearse
