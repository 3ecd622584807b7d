// rehearse compare: two accounts of the same thing, side by side.
//
// What the arguments are is told from their content; a row of kComparers says which of them
// can be compared.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/ring.h"
#include "collectives/lowering/trial.h"
#include "collectives/lowering/tuning.h"
#include "real/calibration/calibration_fit.h"
#include "real/calibration/nccl_table.h"
#include "sim/base/error.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/comparers.h"
#include "tools/trial_options.h"
#include "topology/files/calibration.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr Bytes kOneMegabyte(1 << 20);

}  // namespace

CommandSyntax CompareSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse compare A [B] [options]";
  syntax.explanation =
      "Lays two timelines side by side, op by op: simulated and measured, or any two. A and B are\n"
      "each a folder of \"rehearse run --out\", a timeline or result file, or a scenario, which "
      "is\n"
      "played on the spot; errors are those of A, B is the truth. Or lays what nccl-tests "
      "measured\n"
      "beside what is predicted for --cluster, size by size: then A is the output of\n"
      "all_reduce_perf or one of its siblings, or a table with commas that names its columns\n"
      "(size, time, algbw, busbw). Examples:\n"
      "  rehearse compare scenarios/axonn-fig3-a.json scenarios/axonn-fig3-ab.json\n"
      "  rehearse compare simulated measured/timeline.json --format csv\n"
      "  rehearse compare nccl.log --cluster dgx-a100\n"
      "  rehearse compare table.csv --cluster dgx-a100:nodes=4 --kind all-reduce\n"
      "  rehearse compare nccl.log --cluster dgx-a100 --calibration mine.json\n";
  syntax.positional = {"a", "b"};
  syntax.takes["a"] = syntax.takes["b"] = TakenFile({});
  AddTrialOptions(&syntax);
  syntax.takes["kind"] = TakenCollective();
  syntax.takes["calibration"] = TakenOutput({".json"});
  syntax.takes["using"] = TakenFile({".json"});
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  syntax.options.add_options()("kind", text("KIND"),
                               "which collective it was, where the log does not say it")(
      "calibration", text("FILE"),
      "fit the efficiency of the links that bind and the overhead of a collective to every other "
      "size, as far as these tell them, write them there, and compare with them")(
      "using", text("FILE"), "predict with this calibration")(
      "format", text("text|json|csv")->default_value("text"),
      "what to print; csv for timelines and results");
  return syntax;
}

namespace {

// ---- A table of nccl-tests beside a cluster -----------------------------------------------------

struct ComparedRow {
  NcclRow measured;
  Seconds predicted;
  Choice choice;

  double Error() const { return (predicted - measured.time) / measured.time; }
};

std::vector<ComparedRow> CompareRows(const Cluster& cluster, const Trial& trial,
                                     const std::vector<NcclRow>& measured) {
  const std::vector<Seconds> predicted = Predict(cluster, trial, measured);
  Router router(cluster);
  ChannelFinder finder(router);
  Tuner tuner(router, finder);
  std::vector<ComparedRow> rows;
  for (size_t i = 0; i < measured.size(); ++i)
    rows.push_back({measured[i], predicted[i], ChoiceOf(trial, measured[i].bytes, tuner)});
  return rows;
}

struct Summary {
  const char* what;
  const char* key;
  ErrorSummary errors;
};

std::vector<Summary> Summarize(const std::vector<ComparedRow>& rows) {
  std::vector<double> large;
  std::vector<double> small;
  for (const ComparedRow& row : rows)
    (row.measured.bytes >= kOneMegabyte ? large : small).push_back(std::abs(row.Error()));
  return {{"from 1 MiB on", "from_1_mib", SummarizeErrors(large)},
          {"below 1 MiB", "below_1_mib", SummarizeErrors(small)}};
}

std::string ComparisonText(const std::vector<ComparedRow>& rows, const Trial& trial,
                           const Cluster& cluster, const std::string& path) {
  const auto size = static_cast<uint32_t>(trial.groups.front().size());
  std::string text =
      fmt::format("{}, {} of {} ranks, measured ({}) and predicted ({}, {})\n\n", Name(trial.kind),
                  trial.groups.size() == 1 ? "one group" : "groups", size, VisibleText(path),
                  VisibleText(cluster.name()), Name(trial.fidelity));
  text += fmt::format("{:>13} {:>12} {:>12} {:>8} {:>10} {:>10}  {}\n", "size", "measured",
                      "predicted", "error", "busbw", "busbw", "chosen");
  text += fmt::format("{:>13} {:>12} {:>12} {:>8} {:>10} {:>10}\n", "(B)", "(us)", "(us)", "(%)",
                      "measured", "predicted");
  for (const ComparedRow& row : rows) {
    const auto bus = [&](Seconds time) {
      return BusBandwidth(trial.kind, size, row.measured.bytes, time).value() / 1e9;
    };
    text += fmt::format("{:>13.0f} {:>12.2f} {:>12.2f} {:>+8.1f} {:>10.2f} {:>10.2f}  {}/{}\n",
                        row.measured.bytes.value(), row.measured.time.value() * 1e6,
                        row.predicted.value() * 1e6, row.Error() * 100, bus(row.measured.time),
                        bus(row.predicted), row.choice.algorithm->name, Name(row.choice.protocol));
  }
  text += "\n";
  for (const auto& [what, key, errors] : Summarize(rows)) {
    if (errors.samples == 0) continue;
    text += fmt::format(
        "{:<14} {:>3} sizes: error {:.1f} % in the median, {:.1f} % at the 90th percentile, "
        "{:.1f} % at most\n",
        what, errors.samples, errors.median * 100, errors.ninetieth * 100, errors.largest * 100);
  }
  return text;
}

Json ComparisonJson(const std::vector<ComparedRow>& rows, const Trial& trial,
                    const Cluster& cluster) {
  Json json;
  json["schema"] = "rehearse.comparison.v1";
  json["kind"] = Name(trial.kind);
  json["cluster"] = cluster.name();
  json["ranks"] = trial.groups.front().size();
  json["rows"] = Json::array();
  for (const ComparedRow& row : rows) {
    json["rows"].push_back({{"bytes", static_cast<uint64_t>(row.measured.bytes.value())},
                            {"measured_seconds", row.measured.time.value()},
                            {"predicted_seconds", row.predicted.value()},
                            {"relative_error", row.Error()},
                            {"algorithm", row.choice.algorithm->name},
                            {"protocol", Name(row.choice.protocol)},
                            {"channels", row.choice.nccl_channels}});
  }
  for (const auto& [what, key, errors] : Summarize(rows)) {
    json["errors"][key] = {{"samples", errors.samples},
                           {"median", errors.median},
                           {"ninetieth_percentile", errors.ninetieth},
                           {"largest", errors.largest}};
  }
  return json;
}

std::string CalibrationText(const Calibration& calibration, const std::string& path) {
  std::vector<std::string> fitted;
  for (const LinkCalibration& link : calibration.links) {
    fitted.push_back(fmt::format("{} links of {} at efficiency {:.3f}", Name(link.kind),
                                 Print(link.bandwidth), link.efficiency));
  }
  if (calibration.collective_overhead) {
    fitted.push_back(fmt::format("launching {} a collective and {} a channel",
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
  return VisibleText(fmt::format("{}; written to {}", text, path)) + "\n";
}

std::string CompareNcclTable(const Subject& log, const po::variables_map& values,
                             const std::string& usage, OutputFormat format) {
  if (format == OutputFormat::kCsv) throw Error("--format csv is for timelines and results");
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  std::optional<CollectiveKind> kind;
  if (values.count("kind") > 0) kind = ParseCollectiveKind("--kind: ", text("kind"));
  std::optional<std::string> using_file;
  if (values.count("using") > 0) using_file = text("using");
  auto cluster = ReadTrialCluster(values, using_file, usage);
  // --ranks says how many there are, whatever the log says.
  std::optional<uint32_t> ranks;
  if (values.count("ranks") > 0 || text("groups") != "1") {
    const Trial any = ReadTrial(values, CollectiveKind::kAllReduce, *cluster, std::nullopt);
    ranks = static_cast<uint32_t>(any.groups.front().size());
  }
  const NcclTable table = ReadNcclTable(log.text, log.path, kind, ranks);
  if (!table.kind)
    throw Error({log.path, 0, ""}, "the log does not say which collective it was; give --kind");
  const Trial trial = ReadTrial(values, *table.kind, *cluster, ranks ? std::nullopt : table.ranks,
                                {log.path, 0, ""});

  std::string line;
  Json fit;
  if (values.count("calibration") > 0) {
    const Calibration calibration = FitCalibration(*cluster, {{trial, table.rows}});
    cluster = ApplyCalibration(*cluster, calibration);
    WriteFileAtomically(text("calibration"), ToJson(calibration).dump(2) + "\n");
    line = "\n" + CalibrationText(calibration, text("calibration"));
    fit = calibration.fit;
  }
  const std::vector<ComparedRow> rows = CompareRows(*cluster, trial, table.rows);
  if (format == OutputFormat::kJson) {
    Json json = ComparisonJson(rows, trial, *cluster);
    if (!fit.is_null()) json["fit"] = fit;
    return json.dump(2) + "\n";
  }
  return ComparisonText(rows, trial, *cluster, log.path) + line;
}

// ---- Which can be compared ----------------------------------------------------------------------

struct Comparer {
  SubjectKind a;
  SubjectKind b;
  std::string (*compare)(const Subject& a, const Subject& b, const po::variables_map& values,
                         const std::string& usage, OutputFormat format);
};
constexpr Comparer kComparers[] = {
    {SubjectKind::kNcclTable, SubjectKind::kNothing,
     [](const Subject& log, const Subject&, const po::variables_map& values,
        const std::string& usage,
        OutputFormat format) { return CompareNcclTable(log, values, usage, format); }},
    {SubjectKind::kTimeline, SubjectKind::kTimeline,
     [](const Subject& a, const Subject& b, const po::variables_map&, const std::string&,
        OutputFormat format) { return CompareTimelines(a, b, format); }},
    {SubjectKind::kResult, SubjectKind::kResult,
     [](const Subject& a, const Subject& b, const po::variables_map&, const std::string&,
        OutputFormat format) { return CompareResults(a, b, format); }},
};

const char* Name(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::kNothing:
      return "nothing";
    case SubjectKind::kNcclTable:
      return "a table of nccl-tests";
    case SubjectKind::kTimeline:
      return "a timeline";
    case SubjectKind::kResult:
      return "a result";
  }
  CHECK(false);
}

}  // namespace

int CompareCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CompareSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("a") == 0) throw Error("nothing to compare; usage: " + syntax.usage);
  const OutputFormat format =
      ParseFormat(values["format"].as<std::string>(), {"text", "json", "csv"});
  const Subject a = RecogniseSubject(values["a"].as<std::string>());
  const Subject b =
      values.count("b") == 0 ? Subject{} : RecogniseSubject(values["b"].as<std::string>());
  for (const Comparer& comparer : kComparers) {
    if (comparer.a != a.kind || comparer.b != b.kind) continue;
    std::fputs(comparer.compare(a, b, values, syntax.usage, format).c_str(), stdout);
    return 0;
  }
  throw Error(
      fmt::format("cannot compare {} with {}; expected two timelines, two results, or a table of "
                  "nccl-tests and --cluster",
                  Name(a.kind), Name(b.kind)));
}

}  // namespace rehearse
