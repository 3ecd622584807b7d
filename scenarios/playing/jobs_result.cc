#include "scenarios/playing/jobs_result.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/jobs_fields.h"
#include "sim/base/units.h"
#include "sim/report/result_fields.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// Runs of consecutive devices, by their first and last.
std::vector<std::pair<uint32_t, uint32_t>> RunsOf(const std::vector<uint32_t>& placement) {
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  for (const uint32_t device : placement) {
    if (runs.empty() || runs.back().second + 1 != device) {
      runs.emplace_back(device, device);
    } else {
      runs.back().second = device;
    }
  }
  return runs;
}

// The devices, whichever rank is on which.
std::string DevicesText(std::vector<uint32_t> placement) {
  std::sort(placement.begin(), placement.end());
  std::string text;
  for (const auto& [first, last] : RunsOf(placement)) {
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

void WriteJobs(Page& page, const JobsResult& result) {
  page.Line("{}", page.pen(Ink::kFaint,
                           fmt::format("  {:<26}{:<16}{:>9}{:>7}{:>14}{:>12}{:>12}{:>11}{:>9}{:>7}",
                                       "job", "devices", "starts", "steps", "a step takes", "alone",
                                       "at best", "placement", "sharing", "both")));
  for (const JobResult& job : result.jobs) {
    page.Line("  {:<26}{:<16}{:>9}{:>7}{:>14}{:>12}{:>12}{:>11.3f}{:>9.3f}{:>7.3f}",
              Shortened(job.result.scenario, 25), Shortened(DevicesText(job.placement), 15),
              Print(job.start), Grouped(job.steps.size()), Print(job.result.step), Print(job.alone),
              Print(job.best), job.ByPlacement(), job.BySharing(), job.SlowDown());
  }
  page.Line("  {}",
            page.pen(Ink::kFaint,
                     "alone: where it is, without the others; at best: alone on the best devices; "
                     "times longer by placement, by sharing, and by both"));
}

}  // namespace

namespace {

constexpr double kMost = std::numeric_limits<double>::max();
constexpr int64_t kMostDevices = std::numeric_limits<uint32_t>::max();

void WritePlacement(const std::vector<uint32_t>& placement, Json* to) { *to = RunsOf(placement); }
void WriteCount(const std::vector<Seconds>& steps, Json* to) { *to = steps.size(); }
void WriteByPlacement(const JobResult& job, Json* to) { *to = job.ByPlacement(); }
void WriteBySharing(const JobResult& job, Json* to) { *to = job.BySharing(); }
void WriteSlowDown(const JobResult& job, Json* to) { *to = job.SlowDown(); }
void WriteOwnResult(const Result& result, Json* to) {
  *to = ToJson(result);
  to->erase("links");
  to->erase("simulator");
}

const Fields<JobResult>& JobResultFields() {
  static const Fields<JobResult> fields(
      "job's result", "How long one job takes beside the others, and alone.",
      {Within(&JobResult::result, FieldList<Result>{{"name", &Result::scenario, AText(), Required(),
                                                     "name of the job", "\"data\""}}),
       {"placement", &JobResult::placement,
        WrittenBy(ListOf(Tuple({AWhole(0, kMostDevices), AWhole(0, kMostDevices)})),
                  WritePlacement),
        Required(), "first and last of each run of devices", "[[0, 7]]"},
       {"start_seconds", &JobResult::start, ANumber(0, kMost, "s"), Required(), "when it may begin",
        "0.7"},
       {"repeat", &JobResult::steps, WrittenBy(AWhole(0, kMostDevices), WriteCount), Required(),
        "how many steps", "16"},
       {"steps_seconds", &JobResult::steps, ListOf(ANumber(0, kMost, "s")), Required(),
        "how long each step takes", "[0.7]"},
       {"alone_step_seconds", &JobResult::alone, ANumber(0, kMost, "s"), Required(),
        "how long a step takes alone on the cluster", "0.7"},
       {"best_step_seconds", &JobResult::best, ANumber(0, kMost, "s"), Required(),
        "how long a step takes alone on the best devices", "0.6"},
       {"best_placement", &JobResult::best_order, AText(), Required(), "how these are taken",
        "\"block\""},
       {"slow_down_by_placement", kItself, WrittenBy(ANumber(0, kMost), WriteByPlacement),
        Required(), "alone where it is, divided by alone on the best devices", "1.1"},
       {"slow_down_by_sharing", kItself, WrittenBy(ANumber(0, kMost), WriteBySharing), Required(),
        "its mean step divided by that alone where it is", "1.25"},
       {"slow_down", kItself, WrittenBy(ANumber(0, kMost), WriteSlowDown), Required(),
        "its mean step divided by that on the best devices", "1.375"},
       {"result", &JobResult::result, WrittenBy(Anything("a result"), WriteOwnResult), Required(),
        "a result as of one step, without links and simulator", "{}"}});
  return fields;
}

}  // namespace

const Fields<JobsResult>& JobsResultFields() {
  static const Fields<JobsResult> fields(
      "result of jobs", "How long jobs that share a cluster take.",
      {SchemaVersion(kJobsSchema),
       Within(&JobsResult::all,
              FieldList<Result>{ResultFields().Rows({"scenario", "fidelity"}),
                                {"left_out", &Result::left_out, AText(), Required(),
                                 "what the fidelity ignores", "\"packets\""},
                                {"devices", &Result::ranks, AWhole(0, kMostDevices), Required(),
                                 "how many devices the cluster has", "16"},
                                {"seconds", &Result::step, ANumber(0, kMost, "s"), Required(),
                                 "how long until all jobs have ended", "0.7"}}),
       {"jobs", &JobsResult::jobs, ListOf(ObjectIn<JobResultFields>()), Required(),
        "the jobs, one by one"},
       ResultFields()
           .Rows({"links", "routes", "experts", "simulator", "timeline_hash", "changes"})
           .Within(&JobsResult::all),
       GivenRow()});
  return fields;
}

nlohmann::ordered_json ToJson(const JobsResult& result) {
  Json json = {{"schema", kJobsSchema}};
  JobsResultFields().Write(result, &json);
  return json;
}

std::string ToText(const JobsResult& result, bool color) {
  Page page(color);
  page.Line("{}   {} job{} on {} devices, fidelity {}",
            page.pen(Ink::kBold, Shortened(result.all.scenario, 60)), result.jobs.size(),
            result.jobs.size() == 1 ? "" : "s", Grouped(result.all.ranks), result.all.fidelity);
  for (const JsonChange& change : result.all.changes) page.Line("{}", ToText(change));
  page.Gap();
  page.Line("All have ended after {}", page.pen(Ink::kBold, Print(result.all.step)));
  for (const std::string& line : RouteLines(result.all)) page.Line("  {}", line);
  WriteJobs(page, result);
  for (const JobResult& job : result.jobs) {
    page.Gap();
    page.text += StepToText(job.result, color);
    for (const std::string& note : job.result.notes) page.Line("{}", page.pen(Ink::kYellow, note));
  }
  page.text += MachineToText(result.all, color);
  return std::move(page.text);
}

}  // namespace rehearse
