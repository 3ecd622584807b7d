#include "scenarios/trials/trust.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "real/calibration/cost_fit.h"
#include "real/calibration/machine_pace.h"
#include "real/calibration/probe.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/calibrated.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/trials/random_step.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// So much work takes about 1 to 100 ms per step on a core of 10 to 100 GFLOP/s.
constexpr Flops kLeastWork(3e7);
constexpr Flops kMostWork(4e9);
constexpr double kWanted = 0.10;
constexpr double kSamePace = 0.05;

void Measure(const Schedule& schedule, const TrustOptions& options, TrustRow* row) {
  RunAsThreads(options.ranks, [&](Transport& transport) {
    const Probe probe = RunUntilKept(
        schedule, transport,
        {.kept = options.kept, .patience = options.patience, .is_stopped = options.is_stopped});
    if (transport.rank() != 0) return;
    std::vector<Seconds> times;
    for (const ProbedStep* step : probe.Kept()) times.push_back(ToSeconds(step->timeline.step));
    row->kept = static_cast<uint32_t>(times.size());
    row->disturbed = static_cast<uint32_t>(probe.steps.size() - times.size());
    if (times.empty()) return;
    const Quantiles quantiles = QuantilesOf(times);
    row->tenth = quantiles.tenth;
    row->measured = quantiles.median;
    row->ninetieth = quantiles.ninetieth;
  });
}

std::vector<const TrustRow*> JudgedRows(const TrustReport& report, const std::string& strategy) {
  std::vector<const TrustRow*> rows;
  for (const TrustRow& row : report.rows) {
    if (row.IsJudged() && (strategy.empty() || row.strategy == strategy)) rows.push_back(&row);
  }
  return rows;
}

std::vector<const TrustRow*> RowsAtPace(const TrustReport& report) {
  std::vector<const TrustRow*> rows = JudgedRows(report, "");
  std::erase_if(rows, [](const TrustRow* row) { return !row->IsAtPace(); });
  return rows;
}

std::vector<std::string> StrategiesOf(const TrustReport& report) {
  std::vector<std::string> names;
  for (const TrustRow& row : report.rows) {
    if (std::find(names.begin(), names.end(), row.strategy) == names.end())
      names.push_back(row.strategy);
  }
  return names;
}

// The share of the judged rows whose error is at most `wanted`.
double ShareWithin(const std::vector<const TrustRow*>& rows, double wanted) {
  if (rows.empty()) return 0;
  const auto within = std::count_if(rows.begin(), rows.end(), [&](const TrustRow* row) {
    return std::abs(row->Error()) <= wanted;
  });
  return static_cast<double>(within) / static_cast<double>(rows.size());
}

double MedianSignedError(const TrustReport& report) {
  std::vector<double> errors;
  for (const TrustRow* row : JudgedRows(report, "")) errors.push_back(row->Error());
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  return errors[(errors.size() - 1) / 2];
}

}  // namespace

Prediction PredictStep(const Schedule& schedule, const Calibration& calibration) {
  Scenario scenario;
  const auto bare = ReadClusterArgument(fmt::format("local-cpu:ranks={}", schedule.ranks()));
  scenario.cluster = ApplyCalibration(*bare, calibration);
  scenario.allow_out_of_memory = true;  // it is run all the same
  JobRequest request;
  request.work = schedule;
  request.placement.resize(schedule.ranks());
  std::iota(request.placement.begin(), request.placement.end(), 0u);
  scenario.jobs.push_back(std::move(request));
  const PlayedScenario played = PlayScenario(scenario);
  return {ToSeconds(played.simulation.timeline.step),
          CalibrationNotes(played.schedule(), *scenario.cluster)};
}

namespace {

TrustRow MeasureRow(const RandomStep& step, uint32_t network, const Calibration& calibration,
                    const TrustOptions& options, const MachinePace& pace) {
  TrustRow row;
  row.strategy = step.strategy;
  row.name = step.name;
  row.network = network;
  Prediction prediction = PredictStep(step.schedule, calibration);
  row.predicted = prediction.step;
  row.notes = std::move(prediction.notes);
  row.pace_before = pace.Measure(options.is_stopped);
  Measure(step.schedule, options, &row);
  row.pace_after = pace.Measure(options.is_stopped);
  return row;
}

std::string ErrorSoFar(const TrustReport& report) {
  const ErrorSummary errors = ErrorsOf(report);
  if (errors.samples == 0) return "none undisturbed by other programs so far";
  return fmt::format("error {:.1f} % in the median, {:.1f} % at most", 100 * errors.median,
                     100 * errors.largest);
}

}  // namespace

TrustReport MeasureTrust(const Calibration& calibration, const TrustOptions& options) {
  const HostMachine host = ThisHost();
  const std::string here = MachineName(host.processor, host.cores);
  if (calibration.origin.machine.empty())
    throw Error(
        "the calibration does not say which machine it measured; expected one that rehearse "
        "calibrate wrote");
  if (calibration.origin.machine != here) {
    throw Error(fmt::format("the calibration was measured on {}, but this machine is {}",
                            calibration.origin.machine, here));
  }
  TrustReport report;
  report.ranks = options.ranks;
  report.seed = options.seed;
  report.calibration_date = calibration.origin.date;
  report.host = rehearse::ToJson(host);
  report.environment = ThisEnvironment();
  report.wanted = options.steps;
  const MachinePace pace(calibration.kernels.value_or(MeasuredKernels()),
                         std::min(options.ranks, host.cores));
  options.observer->Begin("predicting and running", "steps", options.steps);
  try {
    for (uint32_t network = 0; report.rows.size() < options.steps; ++network) {
      for (const RandomStep& step : DrawSteps(options.seed, network, options.ranks,
                                              StepUse::kJudging, kLeastWork, kMostWork)) {
        if (report.rows.size() == options.steps) break;
        if (options.is_stopped && options.is_stopped()) throw Stopped("no step was measured");
        report.rows.push_back(MeasureRow(step, network, calibration, options, pace));
        options.observer->Note(ErrorSoFar(report));
        options.observer->Done(static_cast<double>(report.rows.size()));
      }
    }
  } catch (const Stopped&) {
    if (report.rows.empty()) throw Stopped("no step was measured");
  }
  return report;
}

ErrorSummary ErrorsOf(const TrustReport& report, const std::string& strategy) {
  std::vector<double> errors;
  for (const TrustRow* row : JudgedRows(report, strategy)) errors.push_back(std::abs(row->Error()));
  return SummarizeErrors(errors);
}

ErrorSummary ErrorsAtPace(const TrustReport& report) {
  std::vector<double> errors;
  for (const TrustRow* row : RowsAtPace(report)) errors.push_back(std::abs(row->Error()));
  return SummarizeErrors(errors);
}

bool TrustRow::IsAtPace() const {
  const auto is_same = [](const std::optional<double>& pace) {
    return !pace || (*pace <= 1 + kSamePace && *pace >= 1 / (1 + kSamePace));
  };
  return is_same(pace_before) && is_same(pace_after);
}

double RankCorrelation(const TrustReport& report, bool within_networks) {
  const auto rows = JudgedRows(report, "");
  double same = 0;
  double other = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      if (within_networks && rows[i]->network != rows[j]->network) continue;
      const double product = (rows[i]->predicted - rows[j]->predicted).value() *
                             (rows[i]->measured - rows[j]->measured).value();
      if (product > 0) ++same;
      if (product < 0) ++other;
    }
  }
  return same + other > 0 ? (same - other) / (same + other) : 0;
}

Json ToJson(const TrustReport& report) {
  Json json;
  json["schema"] = "rehearse.trust.v1";
  json["ranks"] = report.ranks;
  json["seed"] = report.seed;
  json["calibration_date"] = report.calibration_date;
  json["host"] = report.host;
  json["environment"] = report.environment;
  json["errors"] = ToJson(ErrorsOf(report));
  json["median_signed_error"] = MedianSignedError(report);
  json["share_within_10_percent"] = ShareWithin(JudgedRows(report, ""), kWanted);
  json["errors_at_pace"] = ToJson(ErrorsAtPace(report));
  json["share_within_10_percent_at_pace"] = ShareWithin(RowsAtPace(report), kWanted);
  for (const std::string& strategy : StrategiesOf(report))
    json["errors_by_strategy"][strategy] = ToJson(ErrorsOf(report, strategy));
  json["kendall_tau"] = RankCorrelation(report, false);
  json["kendall_tau_within_networks"] = RankCorrelation(report, true);
  if (report.wanted > report.rows.size()) json["left_out"] = report.wanted - report.rows.size();
  json["rows"] = Json::array();
  for (const TrustRow& row : report.rows) {
    Json entry = {{"strategy", row.strategy},
                  {"name", row.name},
                  {"network", row.network},
                  {"predicted_seconds", row.predicted.value()},
                  {"measured_seconds", row.measured.value()},
                  {"measured_tenth_seconds", row.tenth.value()},
                  {"measured_ninetieth_seconds", row.ninetieth.value()},
                  {"kept", row.kept},
                  {"disturbed", row.disturbed}};
    if (row.IsJudged()) entry["relative_error"] = row.Error();
    if (row.pace_before) entry["pace_before"] = *row.pace_before;
    if (row.pace_after) entry["pace_after"] = *row.pace_after;
    if (!row.notes.empty()) entry["notes"] = row.notes;
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

DataTable TableOf(const TrustReport& report) {
  DataTable table({{"strategy", CellKind::kText},
                   {"name", CellKind::kText},
                   {"network", CellKind::kInteger},
                   {"ranks", CellKind::kInteger},
                   {"status", CellKind::kText},
                   {"reason", CellKind::kText},
                   {"predicted_seconds", CellKind::kNumber},
                   {"measured_seconds", CellKind::kNumber},
                   {"measured_tenth_seconds", CellKind::kNumber},
                   {"measured_ninetieth_seconds", CellKind::kNumber},
                   {"relative_error", CellKind::kNumber},
                   {"kept", CellKind::kInteger},
                   {"disturbed", CellKind::kInteger},
                   {"pace_before", CellKind::kNumber},
                   {"pace_after", CellKind::kNumber},
                   {"notes", CellKind::kText}});
  for (const TrustRow& row : report.rows) {
    const bool is_judged = row.IsJudged();
    const auto measured = [&](Seconds time) {
      return is_judged ? DataCell(time.value()) : DataCell();
    };
    table.Add(
        {row.strategy, row.name, row.network, report.ranks, is_judged ? "judged" : "not judged",
         is_judged ? DataCell() : DataCell("never undisturbed"), row.predicted.value(),
         measured(row.measured), measured(row.tenth), measured(row.ninetieth),
         is_judged ? DataCell(row.Error()) : DataCell(), row.kept, row.disturbed,
         row.pace_before ? DataCell(*row.pace_before) : DataCell(),
         row.pace_after ? DataCell(*row.pace_after) : DataCell(),
         row.notes.empty() ? DataCell() : DataCell(fmt::format("{}", fmt::join(row.notes, "; ")))});
  }
  return table;
}

namespace {

std::string PaceText(const std::optional<double>& pace) {
  return pace ? fmt::format("{:.2f}", *pace) : "?";
}

// What of the errors is the machine's.
std::string TextOfPace(const TrustReport& report) {
  std::vector<double> paces;
  for (const TrustRow* row : JudgedRows(report, ""))
    for (const std::optional<double>& pace : {row->pace_before, row->pace_after})
      if (pace) paces.push_back(*pace);
  if (paces.empty()) return "";
  const std::vector<const TrustRow*> rows = RowsAtPace(report);
  const auto [least, most] = std::minmax_element(paces.begin(), paces.end());
  std::string text = fmt::format(
      "\nThe machine was {}as fast as when it was calibrated: products took {:.2f} to {:.2f} times "
      "as long. ",
      rows.size() == JudgedRows(report, "").size() ? "" : "not always ", *least, *most);
  if (rows.empty())
    return text + "No step ran while it was as fast within 5 %; expected another calibration.\n";
  const ErrorSummary errors = ErrorsAtPace(report);
  return text + fmt::format(
                    "Of the {} step{} during which it was as fast within 5 %, {:.0f} % are within "
                    "10 %, with a median error of {:.1f} %, {:.1f} % at most.\n",
                    rows.size(), rows.size() == 1 ? "" : "s", 100 * ShareWithin(rows, kWanted),
                    100 * errors.median, 100 * errors.largest);
}

}  // namespace

std::string ToText(const TrustReport& report) {
  const auto milliseconds = [](Seconds time) { return time.value() * 1e3; };
  std::string text = fmt::format(
      "{} ranks on {}, {} cores; calibration of {}; load when it began {}; scheduling {}\n\n",
      report.ranks, report.host.at("processor").get<std::string>(),
      report.host.at("cores").get<uint32_t>(), report.calibration_date,
      report.environment.at("load_average").get<std::string>(),
      report.environment.at("scheduling").get<std::string>());
  if (report.wanted > report.rows.size()) {
    text += fmt::format("Interrupted: {} of {} steps.\n\n", report.rows.size(), report.wanted);
  }
  text +=
      "| | step | predicted, ms | measured, ms | 10 % .. 90 % | error | steps kept | products "
      "before, after |\n";
  text += "|---|---|---|---|---|---|---|---|\n";
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const TrustRow& row = report.rows[i];
    text += fmt::format("| {} | {} | {:.2f} | ", i + 1, row.name, milliseconds(row.predicted));
    if (row.IsJudged()) {
      text += fmt::format("{:.2f} | {:.2f} .. {:.2f} | {:+.1f} % | ", milliseconds(row.measured),
                          milliseconds(row.tenth), milliseconds(row.ninetieth), 100 * row.Error());
    } else {
      text += "never undisturbed | | | ";
    }
    text += fmt::format("{} of {}{} | {}, {} |\n", row.kept, row.kept + row.disturbed,
                        row.notes.empty() ? "" : " (noted)", PaceText(row.pace_before),
                        PaceText(row.pace_after));
  }
  if (ErrorsOf(report).samples == 0) {
    return text +
           "\nNo step ran undisturbed by other programs, so there are no errors to show; stop the "
           "others, or give this program the cores to itself (chrt --fifo 10 rehearse trust ...)\n";
  }
  text += "\n| | steps | median error | 90 % below | largest |\n|---|---|---|---|---|\n";
  const auto add = [&](const std::string& name, const ErrorSummary& errors) {
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", name, errors.samples,
                        100 * errors.median, 100 * errors.ninetieth, 100 * errors.largest);
  };
  add("all", ErrorsOf(report));
  for (const std::string& strategy : StrategiesOf(report))
    add(strategy, ErrorsOf(report, strategy));
  text += fmt::format(
      "\nWithin 10 %: {:.0f} % of the steps. Median signed error {:+.1f} %. Kendall's tau of "
      "predicted and measured: {:.2f} over all steps, {:.2f} among strategies of one network.\n",
      100 * ShareWithin(JudgedRows(report, ""), kWanted), 100 * MedianSignedError(report),
      RankCorrelation(report, false), RankCorrelation(report, true));
  return text + TextOfPace(report);
}

}  // namespace rehearse
