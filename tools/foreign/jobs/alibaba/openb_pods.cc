#include "tools/foreign/jobs/alibaba/openb_pods.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/report/text_page.h"
#include "tools/foreign/jobs/job_table.h"

namespace rehearse {
namespace {

enum PodColumn : uint8_t { kPod, kPodGpus, kPodMilli, kPodCreated, kPodDeleted, kPodScheduled };
constexpr std::array<JobColumn, 6> kPodColumns = {{{"name", true},
                                                   {"num_gpu", true},
                                                   {"gpu_milli", true},
                                                   {"creation_time", true},
                                                   {"deletion_time", true},
                                                   {"scheduled_time", true}}};
constexpr uint32_t kMostPodGpus = 1 << 20;
constexpr uint32_t kWholeGpu = 1000;  // thousandths
constexpr double kMostPodSeconds = 3.2e9;

}  // namespace

ImportedJobs ReadOpenbPods(const std::string& path, const JobWindow& window) {
  JobTable table(path, kPodColumns, "an openb_pod_list of Alibaba's trace of 2023");
  JobCollector jobs("openb", path);
  uint64_t shared = 0;
  double last = 0;
  uint64_t until_last = 0;
  while (table.Next()) {
    ArrivedJob job;
    job.devices = table.Whole(kPodGpus, kMostPodGpus);
    const uint32_t milli = table.Whole(kPodMilli, kWholeGpu);
    const std::optional<double> created = table.Number(kPodCreated, kMostPodSeconds);
    const std::optional<double> scheduled = table.Number(kPodScheduled, kMostPodSeconds);
    const std::optional<double> deleted = table.Number(kPodDeleted, kMostPodSeconds);
    if (job.devices == 0) {
      jobs.LeaveOut(JobGap::kNoGpus);
      continue;
    }
    if (!created) {
      jobs.LeaveOut(JobGap::kNoSubmission);
      continue;
    }
    job.name = table.Text(kPod);
    job.submitted = *created;
    if (!jobs.KeepBetween(std::move(job), scheduled, deleted)) continue;
    if (milli > 0 && milli < kWholeGpu) ++shared;
    if (*deleted > last) {
      last = *deleted;
      until_last = 0;
    }
    if (*deleted == last) ++until_last;
  }
  jobs.Note(shared, "on a share of one GPU: it counts as a whole one");
  if (until_last > 1)
    jobs.Note(until_last, "that were there until the last was deleted, and may have run longer");
  return jobs.Finish(window);
}

}  // namespace rehearse
