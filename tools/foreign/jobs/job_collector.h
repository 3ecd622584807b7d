// The jobs that a trace of others has, as they are found: what is left out is counted and said, and
// in the end they are put into the order of their submission.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/readers/job_trace.h"
#include "tools/foreign/traces/kept_bytes.h"

namespace rehearse {

// Which of its jobs are wanted.
struct JobWindow {
  std::optional<uint64_t> first;  // only so many, of those below
  double from_day = 0;            // days after the first job of all
  std::optional<double> to_day;   // jobs submitted before it
};

struct ImportedJobs {
  JobTrace trace;    // with notes of what was left out
  std::string what;  // "1,200 jobs in 3.2 days, on 1 to 256 GPUs, 61 % of them on one; ..."
};

enum class JobGap : uint8_t {
  kNoGpus,
  kNoSubmission,
  kNeverStarted,
  kNoEnd,
  kNoTime,
  kBackwards,
  kCount,
};

class JobCollector {
 public:
  // `name` is the trace's, "philly"; `path` the file's, from which its source is.
  JobCollector(const std::string& name, const std::string& path);

  // `submitted` in seconds from any beginning. Throws Error where jobs would fill the memory.
  void Keep(ArrivedJob job);
  void LeaveOut(JobGap why) { ++gaps_[static_cast<size_t>(why)]; }
  // It ran from start to end, if there are both; else it is left out. Whether it is kept.
  bool KeepBetween(ArrivedJob job, std::optional<double> start, std::optional<double> end);

  // "3 jobs TEXT" if they are any.
  void Note(uint64_t jobs, std::string_view text);
  void Note(std::string text) { notes_.push_back(std::move(text)); }

  // Throws Error where there is no job.
  ImportedJobs Finish(const JobWindow& window);

 private:
  std::vector<std::string> NotesOfGaps() const;

  std::string name_;
  std::string file_;
  std::vector<ArrivedJob> jobs_;
  std::vector<std::string> notes_;
  std::array<uint64_t, static_cast<size_t>(JobGap::kCount)> gaps_ = {};
  KeptBytes kept_;
};

}  // namespace rehearse
