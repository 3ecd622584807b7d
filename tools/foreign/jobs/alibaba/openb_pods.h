// Alibaba's trace of 2023, its lists of Kubernetes' pods (openb_pod_list_default.csv and those that
// are drawn from it): a pod is a job.
//
// Columns as in github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/README.md: num_gpu GPUs, of
// which it has gpu_milli thousandths; it runs from scheduled_time to deletion_time, in seconds.
#pragma once

#include <string>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

// Throws Error (file, line) for what is no such list.
ImportedJobs ReadOpenbPods(const std::string& path, const JobWindow& window = {});

}  // namespace rehearse
