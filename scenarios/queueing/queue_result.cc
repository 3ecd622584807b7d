#include "scenarios/queueing/queue_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/arrival_options.h"
#include "scenarios/readers/long_times.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kHour = 3600;

struct Spread {
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double most = 0;
};

Spread SpreadOf(const std::vector<QueuedJob>& jobs, double (*value)(const QueuedJob&)) {
  std::vector<double> values;
  for (const QueuedJob& job : jobs) values.push_back(value(job));
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return {std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          at(0.5), at(0.9), values.back()};
}

double WaitOf(const QueuedJob& job) { return job.Waited(); }
double PlacementOf(const QueuedJob& job) { return job.by_placement; }
double SharingOf(const QueuedJob& job) { return job.by_sharing; }
double SlowDownOf(const QueuedJob& job) { return job.SlowDown(); }

Json JsonOf(const Spread& spread) {
  return {
      {"mean", spread.mean}, {"median", spread.median}, {"p90", spread.p90}, {"most", spread.most}};
}

double UtilizationOf(const Queue& queue) {
  return queue.end > 0 ? queue.held / (queue.end * queue.devices) : 0;
}
double UtilizationByLast(const Queue& queue) {
  return queue.last > 0 ? queue.held_by_last / (queue.last * queue.devices) : 0;
}

std::string Long(double seconds) {
  return seconds > 0 ? PrintLongTime(Seconds(seconds)) : std::string("0 s");
}

void WriteSpread(Page& page, const char* name, const Spread& spread, bool is_time) {
  const auto text = [&](double value) {
    return is_time ? Long(value) : fmt::format("{:.3f}", value);
  };
  page.Line("  {:<26}{:>12}{:>12}{:>12}{:>12}", name, text(spread.mean), text(spread.median),
            text(spread.p90), text(spread.most));
}

// Sizes from a power of two to the next.
struct SizeRow {
  uint32_t least = 0;
  uint32_t most = 0;
  std::vector<QueuedJob> jobs;
};

std::vector<SizeRow> BySize(const Queue& queue) {
  std::vector<SizeRow> rows;
  for (uint64_t least = 1; least <= queue.devices; least *= 2) {
    SizeRow row = {static_cast<uint32_t>(least), 0, {}};
    for (const QueuedJob& job : queue.jobs) {
      if (job.devices < least || job.devices >= 2 * least) continue;
      row.most = std::max(row.most, job.devices);
      row.jobs.push_back(job);
    }
    if (!row.jobs.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

void WriteSizes(Page& page, const Queue& queue) {
  page.Line("{}", page.pen(Ink::kFaint,
                           fmt::format("  {:<16}{:>8}{:>14}{:>14}{:>12}{:>12}{:>12}",
                                       "GPUs of a job", "jobs", "waited, mean", "waited, p90",
                                       "placement", "sharing", "both, most")));
  for (const SizeRow& row : BySize(queue)) {
    const Spread waits = SpreadOf(row.jobs, WaitOf);
    page.Line("  {:<16}{:>8}{:>14}{:>14}{:>12.3f}{:>12.3f}{:>12.3f}",
              row.most > row.least ? fmt::format("{} to {}", row.least, row.most)
                                   : fmt::format("{}", row.least),
              Grouped(row.jobs.size()), Long(waits.mean), Long(waits.p90),
              SpreadOf(row.jobs, PlacementOf).mean, SpreadOf(row.jobs, SharingOf).mean,
              SpreadOf(row.jobs, SlowDownOf).most);
  }
}

void WriteWorst(Page& page, const Queue& queue) {
  constexpr size_t kMostRows = 8;
  std::vector<const QueuedJob*> worst;
  for (const QueuedJob& job : queue.jobs) {
    if (job.SlowDown() > 1.0005) worst.push_back(&job);
  }
  if (worst.empty()) return;
  std::stable_sort(worst.begin(), worst.end(), [](const QueuedJob* a, const QueuedJob* b) {
    return a->devices * (a->Ran() - a->alone) > b->devices * (b->Ran() - b->alone);
  });
  worst.resize(std::min(worst.size(), kMostRows));
  page.Gap();
  page.Line("{}   by GPU hours lost to placement and sharing",
            page.pen(Ink::kBold, "Jobs that lost most"));
  page.Line("{}",
            page.pen(Ink::kFaint,
                     fmt::format("  {:<32}{:>7}{:>10}{:>12}{:>12}{:>11}{:>9}{:>7}", "job", "GPUs",
                                 "machines", "waited", "ran", "placement", "sharing", "both")));
  for (const QueuedJob* const job : worst) {
    page.Line("  {:<32}{:>7}{:>10}{:>12}{:>12}{:>11.3f}{:>9.3f}{:>7.3f}", Shortened(job->name, 31),
              Grouped(job->devices), job->machines, Long(job->Waited()), Long(job->Ran()),
              job->by_placement, job->by_sharing, job->SlowDown());
  }
}

std::string HoursText(double device_seconds) {
  return Grouped(static_cast<uint64_t>(std::llround(device_seconds / kHour)));
}

}  // namespace

Json ToJson(const Queue& queue, const Scenario& scenario) {
  Json json = {{"schema", "rehearse.queue.v1"},
               {"scenario", scenario.name},
               {"fidelity", Name(scenario.lowering.fidelity)},
               {"left_out", LeftOutBy(scenario.lowering.fidelity)},
               {"devices", queue.devices},
               {"unit", queue.unit},
               {"load", queue.load},
               {"seconds", queue.end},
               {"utilization", UtilizationOf(queue)},
               {"utilization_while_jobs_come", UtilizationByLast(queue)},
               {"slow_down", JsonOf(SpreadOf(queue.jobs, SlowDownOf))},
               {"by_placement", JsonOf(SpreadOf(queue.jobs, PlacementOf))},
               {"by_sharing", JsonOf(SpreadOf(queue.jobs, SharingOf))},
               {"waited_seconds", JsonOf(SpreadOf(queue.jobs, WaitOf))},
               {"device_hours",
                {{"held", queue.held / kHour},
                 {"by_placement", queue.by_placement / kHour},
                 {"by_sharing", queue.by_sharing / kHour},
                 {"fragmented", queue.fragmented / kHour}}},
               {"most_waiting", queue.most_waiting},
               {"simulations", queue.simulations}};
  json["jobs"] = Json::array();
  for (const QueuedJob& job : queue.jobs) {
    Json row = {{"name", job.name},
                {"devices", job.devices},
                {"machines", job.machines},
                {"submitted_seconds", job.submitted},
                {"waited_seconds", job.Waited()},
                {"alone_seconds", job.alone},
                {"seconds", job.Ran()},
                {"slow_down_by_placement", job.by_placement},
                {"slow_down_by_sharing", job.by_sharing},
                {"slow_down", job.SlowDown()}};
    if (!job.user.empty()) row["user"] = job.user;
    json["jobs"].push_back(std::move(row));
  }
  json["moments"] = Json::array();
  for (const Queue::Moment& moment : queue.moments)
    json["moments"].push_back({moment.time, moment.held, moment.waiting});
  json["notes"] = queue.notes;
  if (!scenario.changes.empty()) json["changes"] = ToJson(scenario.changes);
  if (scenario.given) json["given"] = *scenario.given;
  return json;
}

std::string ToText(const Queue& queue, const Scenario& scenario, bool color) {
  Page page(color);
  const JobTrace& trace = *scenario.arrivals->trace;
  page.Line("{}   {} job{} of \"{}\" on {} devices, fidelity {}",
            page.pen(Ink::kBold, Shortened(scenario.name, 60)), Grouped(queue.jobs.size()),
            queue.jobs.size() == 1 ? "" : "s", Shortened(trace.name, 40), Grouped(queue.devices),
            Name(scenario.lowering.fidelity));
  for (const JsonChange& change : scenario.changes) page.Line("{}", ToText(change));
  page.Gap();
  const Spread slow = SpreadOf(queue.jobs, SlowDownOf);
  const Spread waits = SpreadOf(queue.jobs, WaitOf);
  page.Line(
      "All have ended after {}; a job waits {} on average and runs {} times as long as alone "
      "on the best devices",
      page.pen(Ink::kBold, Long(queue.end)), page.pen(Ink::kBold, Long(waits.mean)),
      page.pen(Ink::kBold, fmt::format("{:.3f}", slow.mean)));
  if (queue.last > 0) {
    page.Line("  {} of the devices' time is held while jobs come, {} in all",
              Percent(UtilizationByLast(queue)), Percent(UtilizationOf(queue)));
  } else {
    page.Line("  {} of the devices' time is held", Percent(UtilizationOf(queue)));
  }
  page.Line(
      "  of {} GPU hours, {} are lost to placement and {} to sharing; beside them {} are free "
      "in fragments, while somebody waits for as many",
      HoursText(queue.held), HoursText(queue.by_placement), HoursText(queue.by_sharing),
      HoursText(queue.fragmented));
  page.Gap();
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<26}{:>12}{:>12}{:>12}{:>12}", "jobs",
                                                    "mean", "median", "90 %", "most")));
  WriteSpread(page, "waited", waits, true);
  WriteSpread(page, "longer by placement", SpreadOf(queue.jobs, PlacementOf), false);
  WriteSpread(page, "longer by sharing", SpreadOf(queue.jobs, SharingOf), false);
  WriteSpread(page, "longer by both", slow, false);
  page.Gap();
  WriteSizes(page, queue);
  WriteWorst(page, queue);
  page.Gap();
  for (const std::string& note : queue.notes) page.Line("{}", page.pen(Ink::kYellow, note));
  page.Line("{}", page.pen(Ink::kFaint,
                           fmt::format("{} simulations of steps", Grouped(queue.simulations))));
  return std::move(page.text);
}

}  // namespace rehearse
