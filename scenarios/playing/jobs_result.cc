#include "scenarios/playing/jobs_result.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/units.h"
#include "sim/report/result_shape.h"
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
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<26}{:<16}{:>10}{:>7}{:>14}{:>14}{:>12}",
                                                    "job", "devices", "starts", "steps",
                                                    "a step takes", "alone", "slow-down")));
  for (const JobResult& job : result.jobs) {
    page.Line("  {:<26}{:<16}{:>10}{:>7}{:>14}{:>14}{:>12}", Shortened(job.result.scenario, 25),
              Shortened(DevicesText(job.placement), 15), Print(job.start),
              Grouped(job.steps.size()), Print(job.result.step), Print(job.alone),
              fmt::format("{:.3f}", job.SlowDown()));
  }
}

}  // namespace

nlohmann::ordered_json ToJson(const JobsResult& result) {
  const Json all = ToJson(result.all);
  Json json;
  json["schema"] = kJobsSchema;
  json["scenario"] = result.all.scenario;
  json["fidelity"] = result.all.fidelity;
  json["left_out"] = result.all.left_out;
  json["devices"] = result.all.ranks;
  json["seconds"] = result.all.step.value();
  json["jobs"] = Json::array();
  for (const JobResult& job : result.jobs) {
    Json entry;
    entry["name"] = job.result.scenario;
    entry["placement"] = RunsOf(job.placement);
    entry["start_seconds"] = job.start.value();
    entry["repeat"] = job.steps.size();
    entry["steps_seconds"] = Json::array();
    for (const Seconds step : job.steps) entry["steps_seconds"].push_back(step.value());
    entry["alone_step_seconds"] = job.alone.value();
    entry["slow_down"] = job.SlowDown();
    entry["result"] = ToJson(job.result);
    entry["result"].erase("links");
    entry["result"].erase("simulator");
    json["jobs"].push_back(std::move(entry));
  }
  json["links"] = all.at("links");
  if (all.contains("routes")) json["routes"] = all.at("routes");
  if (all.contains("experts")) json["experts"] = all.at("experts");
  json["simulator"] = all.at("simulator");
  json["timeline_hash"] = all.at("timeline_hash");
  if (all.contains("changes")) json["changes"] = all.at("changes");
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
