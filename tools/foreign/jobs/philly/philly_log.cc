#include "tools/foreign/jobs/philly/philly_log.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "sim/base/visible_text.h"
#include "sim/report/text_page.h"
#include "tools/foreign/jobs/date_text.h"
#include "tools/foreign/jobs/json_list.h"

namespace rehearse {
namespace {

using PhillyValue = nlohmann::json;

const PhillyValue& MemberOf(const PhillyValue& object, const char* key) {
  static const PhillyValue null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

// What Python writes for nothing is a text in some logs.
bool IsNothing(const PhillyValue& value) {
  return value.is_null() || (value.is_string() && (value.get_ref<const std::string&>().empty() ||
                                                   value == "None" || value == "null"));
}

struct PhillyAttempt {
  std::optional<double> start;
  std::optional<double> end;
  size_t gpus = 0;
};

class PhillyReader {
 public:
  explicit PhillyReader(const std::string& path)
      : list_(path, "Philly's cluster_job_log: a list of jobs in JSON"), jobs_("philly", path) {}

  ImportedJobs Read(const JobWindow& window) {
    while (list_.Next()) ReadJob();
    jobs_.Note(several_, "of several attempts: each runs as long as these together");
    jobs_.Note(different_, "whose attempts had different numbers of GPUs: the largest counts");
    if (passed_over_ > 0) {
      jobs_.Note(
          fmt::format("passed over: {} attempt{} without a start or an end, or with an end before "
                      "the start, of jobs that had others",
                      Grouped(passed_over_), passed_over_ == 1 ? "" : "s"));
    }
    if (!has_zone_) {
      jobs_.Note(
          "times are without a zone and taken as they stand: where clocks were set back or forth "
          "in between, an hour is wrong");
    }
    return jobs_.Finish(window);
  }

 private:
  void ReadJob() {
    const PhillyValue& job = list_.value();
    ArrivedJob arrived;
    arrived.name = TextOf(job, "jobid", "the name of a job");
    if (arrived.name.empty()) list_.Expected("/jobid", MemberOf(job, "jobid"), "the name of a job");
    arrived.user = TextOf(job, "user", "the name of a user");
    const std::optional<double> submitted = TimeOf(job, "", "submitted_time");
    const std::vector<PhillyAttempt> attempts = AttemptsOf(job);
    const bool is_running = !attempts.empty() && !attempts.back().end;
    size_t counted = 0;
    size_t least = 0;
    size_t most = 0;
    uint64_t passed_over = 0;
    for (const PhillyAttempt& attempt : attempts) {
      if (!attempt.start || !attempt.end || *attempt.end < *attempt.start) {
        ++passed_over;
        continue;
      }
      arrived.seconds += *attempt.end - *attempt.start;
      least = counted == 0 ? attempt.gpus : std::min(least, attempt.gpus);
      most = std::max(most, attempt.gpus);
      ++counted;
    }
    if (const std::optional<JobGap> gap = WhyLeftOut(attempts, counted, is_running, most,
                                                     submitted.has_value(), arrived.seconds)) {
      jobs_.LeaveOut(*gap);
      return;
    }
    passed_over_ += passed_over;
    if (counted > 1) ++several_;
    if (least != most) ++different_;
    arrived.submitted = *submitted;
    arrived.devices = static_cast<uint32_t>(most);
    jobs_.Keep(std::move(arrived));
  }

  static std::optional<JobGap> WhyLeftOut(const std::vector<PhillyAttempt>& attempts,
                                          size_t counted, bool is_running, size_t gpus,
                                          bool is_submitted, double seconds) {
    const auto has_start = [](const PhillyAttempt& attempt) { return attempt.start.has_value(); };
    const auto has_end = [](const PhillyAttempt& attempt) { return attempt.end.has_value(); };
    if (!is_submitted) return JobGap::kNoSubmission;
    if (!std::any_of(attempts.begin(), attempts.end(), has_start)) return JobGap::kNeverStarted;
    if (is_running) return JobGap::kNoEnd;
    if (counted == 0) {
      return std::any_of(attempts.begin(), attempts.end(), has_end) ? JobGap::kBackwards
                                                                    : JobGap::kNoEnd;
    }
    if (gpus == 0) return JobGap::kNoGpus;
    if (seconds == 0) return JobGap::kNoTime;
    return std::nullopt;
  }

  std::string TextOf(const PhillyValue& object, const char* key, const char* expected) const {
    const PhillyValue& value = MemberOf(object, key);
    if (IsNothing(value)) return "";
    if (!value.is_string()) list_.Expected(fmt::format("/{}", key), value, expected);
    return VisibleText(value.get_ref<const std::string&>());
  }

  std::optional<double> TimeOf(const PhillyValue& object, const std::string& pointer,
                               const char* key) {
    const PhillyValue& value = MemberOf(object, key);
    if (IsNothing(value)) return std::nullopt;
    const std::optional<DatedTime> time =
        value.is_string() ? ParseDate(value.get_ref<const std::string&>()) : std::nullopt;
    if (!time) {
      list_.Expected(fmt::format("{}/{}", pointer, key), value,
                     "a date and time such as \"2017-10-07 01:11:39\"");
    }
    has_zone_ = has_zone_ || time->has_zone;
    return time->seconds;
  }

  // The list under the key; nothing is an empty one.
  const PhillyValue& ListIn(const PhillyValue& object, const std::string& pointer,
                            const char* key) const {
    static const PhillyValue none = PhillyValue::array();
    const PhillyValue& list = MemberOf(object, key);
    if (list.is_null()) return none;
    if (!list.is_array()) list_.Expected(fmt::format("{}/{}", pointer, key), list, "a list");
    return list;
  }

  void CheckObject(const PhillyValue& value, const std::string& pointer) const {
    if (!value.is_object()) list_.Expected(pointer, value, "an object");
  }

  std::vector<PhillyAttempt> AttemptsOf(const PhillyValue& job) {
    std::vector<PhillyAttempt> attempts;
    for (const PhillyValue& said : ListIn(job, "", "attempts")) {
      const std::string pointer = fmt::format("/attempts/{}", attempts.size());
      CheckObject(said, pointer);
      PhillyAttempt attempt;
      attempt.start = TimeOf(said, pointer, "start_time");
      attempt.end = TimeOf(said, pointer, "end_time");
      size_t machine = 0;
      for (const PhillyValue& part : ListIn(said, pointer, "detail")) {
        const std::string at = fmt::format("{}/detail/{}", pointer, machine++);
        CheckObject(part, at);
        attempt.gpus += ListIn(part, at, "gpus").size();
      }
      attempts.push_back(attempt);
    }
    return attempts;
  }

  JsonList list_;
  JobCollector jobs_;
  uint64_t several_ = 0;
  uint64_t different_ = 0;
  uint64_t passed_over_ = 0;
  bool has_zone_ = false;
};

}  // namespace

ImportedJobs ReadPhilly(const std::string& path, const JobWindow& window) {
  return PhillyReader(path).Read(window);
}

}  // namespace rehearse
