#include "tools/foreign/jobs/alibaba/pai_tasks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/report/text_page.h"
#include "tools/foreign/jobs/job_table.h"
#include "tools/foreign/traces/kept_bytes.h"

namespace rehearse {
namespace {

enum PaiColumn : uint8_t { kPaiJob, kPaiInstances, kPaiStatus, kPaiStarted, kPaiEnded, kPaiGpus };
constexpr std::array<JobColumn, 6> kPaiColumns = {{{"job_name", true},
                                                   {"inst_num", true},
                                                   {"status", true},
                                                   {"start_time", true},
                                                   {"end_time", true},
                                                   {"plan_gpu", true}}};
constexpr const char* kPaiTable[] = {"job_name", "task_name", "inst_num", "status",   "start_time",
                                     "end_time", "plan_cpu",  "plan_mem", "plan_gpu", "gpu_type"};
enum PaiOwnerColumn : uint8_t { kPaiOwned, kPaiOwner, kPaiSubmitted };
constexpr std::array<JobColumn, 3> kPaiOwnerColumns = {
    {{"job_name", true}, {"user", true}, {"start_time", true}}};
constexpr const char* kPaiJobTable[] = {"job_name", "inst_id",    "user",
                                        "status",   "start_time", "end_time"};
constexpr const char* kPaiStatuses[] = {"Terminated", "Failed", "Running", "Waiting"};

constexpr uint32_t kMostInstances = 1 << 20;
constexpr double kMostHundredths = 100 * (1 << 10);  // of the GPUs of an instance
constexpr double kMostPaiSeconds = 3.2e9;
constexpr double kMostPaiGpus = 1 << 24;

// What its tasks with GPUs say, and the table of jobs.
struct PaiJob {
  std::string user;
  std::optional<double> submitted;
  double hundredths = 0;  // of GPUs, of the tasks that started
  double start = 0;       // 0: none has
  double end = 0;
  bool has_gpus = false;
  bool has_waiting = false;  // tasks that never started
  bool has_open = false;     // tasks without an end
};

// Seconds; nothing for 0.
std::optional<double> TimeIn(const JobTable& table, size_t column) {
  const std::optional<double> time = table.Number(column, kMostPaiSeconds);
  return time && *time > 0 ? time : std::nullopt;
}

class PaiJobs {
 public:
  explicit PaiJobs(std::string file) : file_(std::move(file)) {}

  void Add(const JobTable& table) {
    const std::string& name = table.Text(kPaiJob);
    if (name.empty()) table.Expected(kPaiJob, "the name of a job");
    const double instances = table.Whole(kPaiInstances, kMostInstances);
    const double hundredths = table.Number(kPaiGpus, kMostHundredths).value_or(0);
    const std::optional<double> start = TimeIn(table, kPaiStarted);
    const std::optional<double> end = TimeIn(table, kPaiEnded);
    PaiJob& job = Of(name);
    if (hundredths * instances == 0) return;
    job.has_gpus = true;
    if (!start || table.Text(kPaiStatus) == "Waiting") {
      job.has_waiting = true;
      return;
    }
    job.hundredths += hundredths * instances;
    if (job.hundredths > 100 * kMostPaiGpus)
      table.Expected(kPaiGpus, fmt::format("at most {:.0f} GPUs in a job", kMostPaiGpus));
    job.start = job.start == 0 ? *start : std::min(job.start, *start);
    if (!end || table.Text(kPaiStatus) == "Running") {
      job.has_open = true;
    } else {
      job.end = std::max(job.end, *end);
    }
  }

  // What the table of jobs says of a job that has tasks.
  void AddOwner(const JobTable& table) {
    const std::optional<double> submitted = TimeIn(table, kPaiSubmitted);
    const auto known = place_of_.find(table.Text(kPaiOwned));
    if (known == place_of_.end()) return;
    PaiJob& job = jobs_[known->second].second;
    job.submitted = submitted;
    job.user = table.Text(kPaiOwner);
    if (!kept_.Take(job.user.size())) FailSize();
  }

  // In the order in which the table has them.
  const std::vector<std::pair<std::string, PaiJob>>& jobs() const { return jobs_; }

 private:
  PaiJob& Of(const std::string& name) {
    const auto [known, is_new] = place_of_.emplace(name, jobs_.size());
    if (is_new) {
      jobs_.emplace_back(name, PaiJob());
      // The name twice, and a node of the table of names.
      constexpr size_t kNode = 64;
      if (!kept_.TakeEntry<std::pair<std::string, PaiJob>>(2 * name.size() + kNode)) FailSize();
    }
    return jobs_[known->second].second;
  }

  [[noreturn]] void FailSize() const {
    throw Error({file_, 0, ""}, fmt::format("found jobs of more than {} MiB, expected fewer",
                                            KeptBytes::kMost >> 20));
  }

  std::string file_;
  std::vector<std::pair<std::string, PaiJob>> jobs_;
  std::unordered_map<std::string, size_t> place_of_;
  KeptBytes kept_;
};

}  // namespace

ImportedJobs ReadPai(const std::vector<std::string>& paths, const JobWindow& window) {
  const std::string& path = paths.front();
  const bool has_owners = paths.size() > 1;
  if (paths.size() > 2) {
    throw Error(
        fmt::format("found {} files, expected the pai_task_table.csv of Alibaba's PAI and, "
                    "if it is there, its pai_job_table.csv",
                    paths.size()));
  }
  JobTable table(path, kPaiColumns, "the pai_task_table.csv of Alibaba's PAI",
                 {kPaiTable, "status", kPaiStatuses});
  PaiJobs found(InputName(path));
  while (table.Next()) found.Add(table);
  if (has_owners) {
    JobTable owners(paths[1], kPaiOwnerColumns, "the pai_job_table.csv of Alibaba's PAI",
                    {kPaiJobTable, "status", kPaiStatuses});
    while (owners.Next()) found.AddOwner(owners);
  }
  JobCollector jobs("pai", path);
  uint64_t fractions = 0;
  double asked = 0;
  double rounded = 0;
  uint64_t partly_waiting = 0;
  for (const auto& [name, said] : found.jobs()) {
    if (!said.has_gpus) {
      jobs.LeaveOut(JobGap::kNoGpus);
      continue;
    }
    if (has_owners && !said.submitted) {
      jobs.LeaveOut(JobGap::kNoSubmission);
      continue;
    }
    // Sums of shares such as 33.4 of a hundred are not exact.
    constexpr double kExact = 1e6;
    const double gpus = std::round(said.hundredths / 100 * kExact) / kExact;
    const auto devices = static_cast<uint32_t>(std::ceil(gpus));
    const auto start = said.start > 0 ? std::optional(said.start) : std::nullopt;
    const auto end = said.end > 0 && !said.has_open ? std::optional(said.end) : std::nullopt;
    if (!jobs.KeepBetween({name, said.submitted.value_or(said.start), devices, 0, said.user}, start,
                          end))
      continue;
    partly_waiting += said.has_waiting ? 1 : 0;
    if (gpus == devices) continue;
    ++fractions;
    asked += gpus;
    rounded += devices;
  }
  jobs.Note(fractions, fmt::format("on fractions of a GPU, {} GPUs in all, each rounded up to "
                                   "whole ones, {} in all",
                                   Grouped(static_cast<uint64_t>(std::round(asked))),
                                   Grouped(static_cast<uint64_t>(rounded))));
  jobs.Note(partly_waiting, "with tasks that never started, whose GPUs are not counted");
  if (!has_owners) {
    jobs.Note(
        "jobs count as submitted when their first task was launched: how long they had waited, and "
        "whose they are, is in pai_job_table.csv, which may be given as a second file");
  }
  return jobs.Finish(window);
}

}  // namespace rehearse
