#include "tools/foreign/jobs/helios/cluster_log.h"

#include <array>
#include <cmath>

#include "tools/foreign/jobs/job_table.h"

namespace rehearse {
namespace {

enum LogColumn : uint8_t {
  kLogJob,
  kLogUser,
  kLogGpus,
  kLogState,
  kLogSubmitted,
  kLogStarted,
  kLogEnded,
  kLogDuration
};
constexpr std::array<JobColumn, 8> kLogColumns = {{{"job_id", true},
                                                   {"user", false},
                                                   {"gpu_num", true},
                                                   {"state", true},
                                                   {"submit_time", true},
                                                   {"start_time", true},
                                                   {"end_time", true},
                                                   {"duration", false}}};

constexpr uint32_t kMostLogGpus = 1 << 20;
constexpr double kMostLogSeconds = 3.2e9;
// Of what is rounded to seconds on both sides.
constexpr double kSameDuration = 1;

// Whether the trace ended before the job did.
bool IsUnfinished(const std::string& state) {
  return state == "RUNNING" || state == "SUSPENDED" || state == "PENDING";
}

ImportedJobs ReadClusterLog(const std::string& name, const std::string& what,
                            const std::string& path, const JobWindow& window) {
  JobTable table(path, kLogColumns, what);
  JobCollector jobs(name, path);
  uint64_t other_durations = 0;
  while (table.Next()) {
    ArrivedJob job;
    job.devices = table.Whole(kLogGpus, kMostLogGpus);
    const std::optional<double> submitted = table.Date(kLogSubmitted);
    const std::optional<double> started = table.Date(kLogStarted);
    std::optional<double> ended = table.Date(kLogEnded);
    const std::optional<double> duration = table.Number(kLogDuration, kMostLogSeconds);
    if (job.devices == 0) {
      jobs.LeaveOut(JobGap::kNoGpus);
      continue;
    }
    if (!submitted) {
      jobs.LeaveOut(JobGap::kNoSubmission);
      continue;
    }
    if (IsUnfinished(table.Text(kLogState))) ended.reset();
    job.name = table.Text(kLogJob);
    job.user = table.Text(kLogUser);
    job.submitted = *submitted;
    if (jobs.KeepBetween(std::move(job), started, ended) && duration &&
        std::fabs(*ended - *started - *duration) > kSameDuration)
      ++other_durations;
  }
  jobs.Note(
      other_durations,
      "with a \"duration\" that is not from start to end: what is taken is from start to end");
  return jobs.Finish(window);
}

}  // namespace

ImportedJobs ReadHelios(const std::string& path, const JobWindow& window) {
  return ReadClusterLog("helios", "the cluster_log.csv of Helios", path, window);
}

ImportedJobs ReadAcme(const std::string& path, const JobWindow& window) {
  return ReadClusterLog("acme", "the trace_seren.csv or trace_kalos.csv of Acme", path, window);
}

}  // namespace rehearse
