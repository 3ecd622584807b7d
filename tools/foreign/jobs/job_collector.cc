#include "tools/foreign/jobs/job_collector.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/long_times.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/visible_text.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr double kDay = 86400;
constexpr double kHour = 3600;

constexpr const char* kGapWords[] = {"without GPUs",         "without a time of submission",
                                     "that never started",   "whose end is missing",
                                     "that ran for no time", "with an end before the start"};
static_assert(std::size(kGapWords) == static_cast<size_t>(JobGap::kCount));

// Without what subtraction leaves behind the sixth digit.
double ToMicroseconds(double seconds) {
  constexpr double kMicroseconds = 1e6;
  return std::round(seconds * kMicroseconds) / kMicroseconds;
}

std::string JobsText(uint64_t jobs) {
  return fmt::format("{} job{}", Grouped(jobs), jobs == 1 ? "" : "s");
}

// The jobs of the window. They are sorted, and counted from the first of them.
std::vector<ArrivedJob> JobsIn(const JobWindow& window, std::vector<ArrivedJob> jobs,
                               std::vector<std::string>* notes) {
  const auto before = [](const ArrivedJob& job, double time) { return job.submitted < time; };
  const double origin = jobs.front().submitted;
  const auto begin =
      std::lower_bound(jobs.begin(), jobs.end(), origin + window.from_day * kDay, before);
  auto end = window.to_day
                 ? std::lower_bound(begin, jobs.end(), origin + *window.to_day * kDay, before)
                 : jobs.end();
  if (begin != jobs.begin() || end != jobs.end()) {
    notes->push_back(fmt::format("left out: {} before --from, {} from --to on",
                                 JobsText(static_cast<uint64_t>(begin - jobs.begin())),
                                 Grouped(static_cast<uint64_t>(jobs.end() - end))));
  }
  const auto count = static_cast<uint64_t>(end - begin);
  if (window.first && count > *window.first) {
    end = begin + static_cast<ptrdiff_t>(*window.first);
    notes->push_back(fmt::format("left out: {} after the first {}", JobsText(count - *window.first),
                                 Grouped(*window.first)));
  }
  jobs.erase(end, jobs.end());
  jobs.erase(jobs.begin(), begin);
  return jobs;
}

std::string Summary(const std::vector<ArrivedJob>& jobs) {
  const auto smaller = [](const ArrivedJob& a, const ArrivedJob& b) {
    return a.devices < b.devices;
  };
  const auto [least, most] = std::minmax_element(jobs.begin(), jobs.end(), smaller);
  const auto on_one = std::count_if(jobs.begin(), jobs.end(),
                                    [](const ArrivedJob& job) { return job.devices == 1; });
  double device_seconds = 0;
  std::vector<double> times;
  times.reserve(jobs.size());
  for (const ArrivedJob& job : jobs) {
    device_seconds += job.devices * job.seconds;
    times.push_back(job.seconds);
  }
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::string text = JobsText(jobs.size());
  if (jobs.back().submitted > 0) text += " in " + PrintLongTime(Seconds(jobs.back().submitted));
  text += least->devices == most->devices
              ? fmt::format(", on {} GPU{}", most->devices, most->devices == 1 ? "" : "s")
              : fmt::format(", on {} to {} GPUs, {:.0f} % of them on one", least->devices,
                            Grouped(most->devices),
                            100 * static_cast<double>(on_one) / static_cast<double>(jobs.size()));
  const auto hours = static_cast<uint64_t>(std::round(device_seconds / kHour));
  return text + fmt::format("; median {}, {} GPU hour{}", PrintLongTime(Seconds(*middle)),
                            Grouped(hours), hours == 1 ? "" : "s");
}

}  // namespace

JobCollector::JobCollector(const std::string& name, const std::string& path)
    : name_(name), file_(InputName(path)) {}

void JobCollector::Keep(ArrivedJob job) {
  if (!kept_.TakeEntry<ArrivedJob>(job.name.size() + job.user.size())) {
    throw Error({file_, 0, ""},
                fmt::format("found jobs of more than {} MiB, expected a trace of fewer",
                            KeptBytes::kMost >> 20));
  }
  jobs_.push_back(std::move(job));
}

bool JobCollector::KeepBetween(ArrivedJob job, std::optional<double> start,
                               std::optional<double> end) {
  if (start && end && ToMicroseconds(*end - *start) > 0) {
    job.seconds = ToMicroseconds(*end - *start);
    Keep(std::move(job));
    return true;
  }
  LeaveOut(!start          ? JobGap::kNeverStarted
           : !end          ? JobGap::kNoEnd
           : *end < *start ? JobGap::kBackwards
                           : JobGap::kNoTime);
  return false;
}

void JobCollector::Note(uint64_t jobs, std::string_view text) {
  if (jobs > 0) notes_.push_back(fmt::format("{} {}", JobsText(jobs), text));
}

std::vector<std::string> JobCollector::NotesOfGaps() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < gaps_.size(); ++i) {
    if (gaps_[i] > 0)
      notes.push_back(fmt::format("left out: {} {}", JobsText(gaps_[i]), kGapWords[i]));
  }
  return notes;
}

ImportedJobs JobCollector::Finish(const JobWindow& window) {
  std::vector<std::string> notes = NotesOfGaps();
  const auto fail = [&](std::string message) {
    for (const std::string& note : notes) message += "; " + note;
    throw Error({file_, 0, ""}, message);
  };
  if (jobs_.empty()) fail("found no job that ran on GPUs, expected one or more");
  std::stable_sort(jobs_.begin(), jobs_.end(), [](const ArrivedJob& a, const ArrivedJob& b) {
    return a.submitted < b.submitted;
  });
  ImportedJobs imported;
  JobTrace& trace = imported.trace;
  trace.name = name_;
  trace.source = VisibleText(std::filesystem::path(file_).filename().string());
  trace.jobs = JobsIn(window, std::move(jobs_), &notes);
  if (trace.jobs.empty()) fail("found no job between --from and --to");
  const double origin = trace.jobs.front().submitted;
  for (ArrivedJob& job : trace.jobs) job.submitted = ToMicroseconds(job.submitted - origin);
  notes.insert(notes.end(), notes_.begin(), notes_.end());
  trace.notes = std::move(notes);
  imported.what = Summary(trace.jobs);
  return imported;
}

}  // namespace rehearse
