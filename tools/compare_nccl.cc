// What nccl-tests measured, compared with what is predicted for a cluster, size by size.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/ring.h"
#include "collectives/lowering/trial.h"
#include "collectives/lowering/tuning.h"
#include "real/calibration/calibration_fit.h"
#include "sim/base/error.h"
#include "sim/base/input_record.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "tools/alpha_beta_fit.h"
#include "tools/comparers.h"
#include "tools/log_trials.h"
#include "tools/trial_options.h"
#include "topology/files/calibration.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr Bytes kOneMegabyte(1 << 20);

struct ComparedRow {
  NcclRow measured;
  Seconds predicted;
  Choice choice;

  double Error() const { return (predicted - measured.time) / measured.time; }
};

// One table of the log.
struct ComparedTable {
  Trial trial;
  std::vector<ComparedRow> rows;

  uint32_t ranks() const { return static_cast<uint32_t>(trial.groups.front().size()); }
  double BusOf(const ComparedRow& row, Seconds time) const {
    return BusBandwidth(trial.kind, ranks(), row.measured.bytes, time).value() / 1e9;
  }
};

std::vector<ComparedRow> CompareRows(const Cluster& cluster, const Trial& trial,
                                     const std::vector<NcclRow>& measured) {
  const std::vector<Seconds> predicted = Predict(cluster, trial, measured);
  Router router(cluster, trial.routing);
  Tuner tuner(router, trial.nccl);
  std::vector<ComparedRow> rows;
  rows.reserve(measured.size());
  for (size_t i = 0; i < measured.size(); ++i)
    rows.push_back({measured[i], predicted[i], ChoiceOf(trial, measured[i].bytes, tuner)});
  return rows;
}

struct Summary {
  const char* what;
  const char* key;
  ErrorSummary errors;
};

std::vector<Summary> Summarize(const std::vector<const ComparedTable*>& tables) {
  std::vector<double> large;
  std::vector<double> small;
  for (const ComparedTable* table : tables) {
    for (const ComparedRow& row : table->rows)
      (row.measured.bytes >= kOneMegabyte ? large : small).push_back(std::abs(row.Error()));
  }
  return {{"from 1 MiB on", "from_1_mib", SummarizeErrors(large)},
          {"below 1 MiB", "below_1_mib", SummarizeErrors(small)}};
}

// The rows that differ most, in their original order.
std::vector<size_t> ShownRows(const ComparedTable& table, std::optional<size_t> most) {
  std::vector<size_t> order(table.rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!most || *most >= order.size()) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return std::abs(table.rows[x].Error()) > std::abs(table.rows[y].Error());
  });
  order.resize(*most);
  std::sort(order.begin(), order.end());
  return order;
}

std::string SummaryText(const std::vector<const ComparedTable*>& tables) {
  std::string text;
  for (const auto& [what, key, errors] : Summarize(tables)) {
    if (errors.samples == 0) continue;
    text += fmt::format(
        "{:<14} {:>3} sizes: error {:.1f} % in the median, {:.1f} % at the 90th percentile, {:.1f} "
        "% at most\n",
        what, errors.samples, errors.median * 100, errors.ninetieth * 100, errors.largest * 100);
  }
  return text;
}

std::string ComparisonText(const ComparedTable& table, const Cluster& cluster,
                           const std::string& path, std::optional<size_t> most) {
  const Trial& trial = table.trial;
  std::string text =
      fmt::format("{}, {} of {} ranks, measured ({}) and predicted ({}, {})\n\n", Name(trial.kind),
                  trial.groups.size() == 1 ? "one group" : "groups", table.ranks(),
                  VisibleText(path), VisibleText(cluster.name()), Name(trial.fidelity));
  text += fmt::format("{:>13} {:>12} {:>12} {:>8} {:>10} {:>10}  {}\n", "size", "measured",
                      "predicted", "error", "busbw", "busbw", "chosen");
  text += fmt::format("{:>13} {:>12} {:>12} {:>8} {:>10} {:>10}\n", "(B)", "(us)", "(us)", "(%)",
                      "measured", "predicted");
  const std::vector<size_t> shown = ShownRows(table, most);
  for (const size_t i : shown) {
    const ComparedRow& row = table.rows[i];
    text += fmt::format("{:>13.0f} {:>12.2f} {:>12.2f} {:>+8.1f} {:>10.2f} {:>10.2f}  {}/{}\n",
                        row.measured.bytes.value(), row.measured.time.value() * 1e6,
                        row.predicted.value() * 1e6, row.Error() * 100,
                        table.BusOf(row, row.measured.time), table.BusOf(row, row.predicted),
                        row.choice.algorithm->name(), Name(row.choice.protocol));
  }
  if (shown.size() < table.rows.size())
    text += fmt::format("{:>13} {} that differ less (--rows all)\n", "...",
                        table.rows.size() - shown.size());
  return text + "\n" + SummaryText({&table});
}

// A row for each size of each table.
DataTable TableOf(const std::vector<ComparedTable>& tables, const Cluster& cluster,
                  std::optional<size_t> most) {
  DataTable rows({{"kind", CellKind::kText},
                  {"cluster", CellKind::kText},
                  {"ranks", CellKind::kInteger},
                  {"groups", CellKind::kInteger},
                  {"fidelity", CellKind::kText},
                  {"bytes", CellKind::kInteger},
                  {"measured_seconds", CellKind::kNumber},
                  {"predicted_seconds", CellKind::kNumber},
                  {"relative_error", CellKind::kNumber},
                  {"measured_busbw_gb_per_s", CellKind::kNumber},
                  {"predicted_busbw_gb_per_s", CellKind::kNumber},
                  {"algorithm", CellKind::kText},
                  {"protocol", CellKind::kText},
                  {"channels", CellKind::kInteger}});
  for (const ComparedTable& table : tables) {
    for (const size_t i : ShownRows(table, most)) {
      const ComparedRow& row = table.rows[i];
      rows.Add({Name(table.trial.kind), cluster.name(), table.ranks(), table.trial.groups.size(),
                Name(table.trial.fidelity), static_cast<uint64_t>(row.measured.bytes.value()),
                row.measured.time.value(), row.predicted.value(), row.Error(),
                table.BusOf(row, row.measured.time), table.BusOf(row, row.predicted),
                row.choice.algorithm->name(), Name(row.choice.protocol), row.choice.nccl_channels});
    }
  }
  return rows;
}

void AddErrors(const std::vector<const ComparedTable*>& tables, Json* json) {
  for (const auto& [what, key, errors] : Summarize(tables)) {
    (*json)["errors"][key] = {{"samples", errors.samples},
                              {"median", errors.median},
                              {"ninetieth_percentile", errors.ninetieth},
                              {"largest", errors.largest}};
  }
}

// Adds kind, ranks, rows and errors of one table.
void AddTable(const ComparedTable& table, std::optional<size_t> most, Json* json) {
  (*json)["ranks"] = table.ranks();
  (*json)["rows"] = Json::array();
  for (const size_t i : ShownRows(table, most)) {
    const ComparedRow& row = table.rows[i];
    (*json)["rows"].push_back({{"bytes", static_cast<uint64_t>(row.measured.bytes.value())},
                               {"measured_seconds", row.measured.time.value()},
                               {"predicted_seconds", row.predicted.value()},
                               {"relative_error", row.Error()},
                               {"algorithm", row.choice.algorithm->name()},
                               {"protocol", Name(row.choice.protocol)},
                               {"channels", row.choice.nccl_channels}});
  }
  AddErrors({&table}, json);
}

std::vector<const ComparedTable*> PointersTo(const std::vector<ComparedTable>& tables) {
  std::vector<const ComparedTable*> pointers;
  pointers.reserve(tables.size());
  for (const ComparedTable& table : tables) pointers.push_back(&table);
  return pointers;
}

// The figures of a single table are at the top; those of several are under "tables", with "errors"
// over all.
Json ComparisonJson(const std::vector<ComparedTable>& tables, const Cluster& cluster,
                    std::optional<size_t> most) {
  Json json;
  json["schema"] = "rehearse.comparison.v1";
  if (tables.size() == 1) json["kind"] = Name(tables.front().trial.kind);
  json["cluster"] = cluster.name();
  if (tables.size() == 1) {
    AddTable(tables.front(), most, &json);
    return json;
  }
  for (const ComparedTable& table : tables) {
    Json& own = json["tables"].emplace_back(Json{{"kind", Name(table.trial.kind)}});
    AddTable(table, most, &own);
  }
  AddErrors(PointersTo(tables), &json);
  return json;
}

std::string CalibrationText(const Calibration& calibration, const std::string& path) {
  std::vector<std::string> fitted;
  for (const LinkCalibration& link : calibration.links) {
    fitted.push_back(fmt::format("{} links of {} at efficiency {:.3f}", Name(link.kind),
                                 Print(link.bandwidth), link.efficiency));
  }
  if (calibration.collective_overhead) {
    fitted.push_back(fmt::format("launching {} per collective and {} per channel",
                                 Print(*calibration.collective_overhead),
                                 Print(*calibration.channel_overhead)));
  }
  const Json& fit = calibration.fit;
  std::string text =
      fitted.empty()
          ? std::string("nothing is fitted")
          : fmt::format("fitted on {} of {} sizes: {}; mean error {:.1f} %, without {:.1f} %",
                        fit["fitted_on"].get<size_t>(), fit["samples"].get<size_t>(),
                        fmt::join(fitted, ", "), 100 * fit["mean_error"].get<double>(),
                        100 * fit["mean_error_without"].get<double>());
  for (const Json& remark : fit["remarks"]) text += "; " + remark.get<std::string>();
  return VisibleText(fmt::format("{}; written to {}", text, OutputName(path))) + "\n";
}

}  // namespace

std::string CompareNcclLog(const Subject& log, const po::variables_map& values,
                           const std::string& usage, const CompareFormat& format) {
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  std::optional<std::string> using_file;
  if (values.count("using") > 0) using_file = text("using");
  const auto inputs = std::make_shared<InputRecord>();
  auto cluster = ReadTrialCluster(values, using_file, usage, {.record = inputs});
  for (const JsonChange& change : inputs->changes) Say(ToText(change));
  std::vector<FitTable> measured;
  for (LogTrial& read : ReadLogTrials(log.text, log.path, values, *cluster))
    measured.push_back({std::move(read.trial), std::move(read.table.rows)});

  std::string line;
  Json fit;
  if (values.count("calibration") > 0) {
    const Calibration calibration = FitCalibration(*cluster, measured);
    cluster = ApplyCalibration(*cluster, calibration);
    WriteFileAtomically(text("calibration"), ToJson(calibration).dump(2) + "\n");
    line = "\n" + CalibrationText(calibration, text("calibration"));
    fit = calibration.fit;
  }
  const std::optional<AlphaBetaFit> alpha_beta = FitAlphaBeta(measured);
  std::vector<ComparedTable> tables;
  tables.reserve(measured.size());
  for (const FitTable& table : measured)
    tables.push_back({table.trial, CompareRows(*cluster, table.trial, table.rows)});
  if (IsTable(format.format)) return Print(TableOf(tables, *cluster, format.rows), format.format);
  if (format.format == OutputFormat::kJson) {
    Json json = ComparisonJson(tables, *cluster, format.rows);
    if (alpha_beta) json["alpha_beta"] = ToJson(*alpha_beta);
    if (!fit.is_null()) json["fit"] = fit;
    return json.dump(2) + "\n";
  }
  std::string all;
  for (const ComparedTable& table : tables)
    all += (all.empty() ? "" : "\n") + ComparisonText(table, *cluster, log.path, format.rows);
  if (tables.size() > 1)
    all += fmt::format("\nall {} tables\n", tables.size()) + SummaryText(PointersTo(tables));
  if (alpha_beta) all += ToText(*alpha_beta) + "\n";
  return all + line;
}

}  // namespace rehearse
