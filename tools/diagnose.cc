// rehearse diagnose: why is it slow? What was measured is compared with what is expected, and all
// that may be wrong is simulated.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/log_diagnosis.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/log_trials.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

}  // namespace

CommandSyntax DiagnoseSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse diagnose LOG --cluster CLUSTER [options]";
  syntax.explanation =
      "Says what is wrong where a log of nccl-tests or rccl-tests is slower than its cluster "
      "should\n"
      "be: what is expected beside what was measured, how often such a gap comes by itself, and\n"
      "what may cause it, in order. Every cause is simulated on the cluster and its strength is\n"
      "fitted; shown are how much of the gap it explains and at which sizes, what it predicts for\n"
      "other collectives, and what would confirm or refute it. Causes that the log cannot tell\n"
      "apart are one finding, with the measurement that would. LOG is the output of one or more\n"
      "of all_reduce_perf and its siblings, or a CSV table of sizes and times. Examples:\n"
      "  rehearse diagnose nccl.log --cluster dgx-h100:nodes=4\n"
      "  rehearse diagnose nccl.log --cluster my.json --using mine.json --format json\n"
      "  rehearse diagnose table.csv --cluster dgx-a100:nodes=2 --kind all-reduce\n";
  syntax.positional = {"subject"};
  syntax.takes["subject"] = TakenFile({});
  AddTrialOptions(&syntax);
  syntax.takes["kind"] = TakenCollective();
  syntax.takes["using"] = TakenFile({".json"});
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  syntax.options.add_options()("kind", text("KIND"),
                               "which collective it was, where the log does not say; which table "
                               "to diagnose, where there are several")(
      "using", text("FILE"),
      "a calibration of the healthy machine, which `rehearse compare --calibration` wrote")(
      "findings", Whole("N", "3", 1u, 1000u), "show at most N findings (text only)");
  AddFormatOption(syntax.options, kTextAndJson);
  return syntax;
}

namespace {

std::string DiagnoseLogFile(const std::string& path, const std::string& log,
                            const po::variables_map& values, const std::string& usage,
                            OutputFormat format) {
  std::optional<std::string> using_file;
  if (values.count("using") > 0) using_file = values["using"].as<std::string>();
  const auto inputs = std::make_shared<InputRecord>();
  const std::shared_ptr<const Cluster> cluster =
      ReadTrialCluster(values, using_file, usage, {.record = inputs});
  for (const JsonChange& change : inputs->changes) Say(ToText(change));
  CollectiveRun run{cluster, {}};
  std::vector<NcclTable> tables;
  for (LogTrial& read : ReadLogTrials(log, path, values, *cluster)) {
    const uint32_t devices = cluster->device_count();
    const auto ranks =
        static_cast<uint32_t>(read.trial.groups.front().size() * read.trial.groups.size());
    if (ranks < devices && values.count("ranks") == 0)
      Say(
          fmt::format("{}: {} ranks take part, of the {} that cluster \"{}\" has: the first ones "
                      "are meant (--ranks names others)",
                      path, ranks, devices, VisibleText(cluster->name())));
    run.trials.push_back(std::move(read.trial));
    tables.push_back(std::move(read.table));
  }
  const LogDiagnosis diagnosis = DiagnoseLog(run, tables);
  if (format == OutputFormat::kJson) return ToJson(diagnosis).dump(2) + "\n";
  return fmt::format("{} on {}\n\n", VisibleText(path), VisibleText(cluster->name())) +
         ToText(diagnosis, values["findings"].as<uint32_t>());
}

}  // namespace

int DiagnoseCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = DiagnoseSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("subject") == 0) throw Error("nothing to diagnose; usage: " + syntax.usage);
  const OutputFormat format = ReadFormat(values, kTextAndJson);
  const auto given = values["subject"].as<std::string>();
  const std::string path = InputName(given);
  const std::string text = ReadInputFile(given);
  if (!LooksLikeNcclLog(text))
    throw Error({path, 0, ""}, "expected a log of nccl-tests, with a line that names its columns");
  std::fputs(DiagnoseLogFile(path, text, values, syntax.usage, format).c_str(), stdout);
  return 0;
}

}  // namespace rehearse
