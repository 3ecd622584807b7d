// rehearse diagnose: why is it slow? What was measured is compared with what is expected, and all
// that may be wrong is simulated.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/log_diagnosis.h"
#include "scenarios/diagnosing/measured_step.h"
#include "scenarios/diagnosing/step_diagnosis.h"
#include "scenarios/diagnosing/timeline_alone.h"
#include "scenarios/diagnosing/timeline_parts.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "sim/report/comparison.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/timeline_record.h"
#include "tools/command.h"
#include "tools/comparers.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/foreign_kind.h"
#include "tools/import_kinds.h"
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
  syntax.usage = "rehearse diagnose LOG --cluster CLUSTER|RUN --measured VALUE|TIMELINE [options]";
  syntax.explanation =
      "Says what is wrong where a log of nccl-tests or rccl-tests is slower than its cluster "
      "should\n"
      "be, or a training step slower than its scenario: what is expected beside what was "
      "measured,\n"
      "how often such a gap comes by itself, and what may cause it, in order. Every cause is\n"
      "simulated and its strength is fitted; shown are how much of the gap it explains, what it\n"
      "predicts elsewhere, and what would confirm or refute it. Causes that cannot be told apart\n"
      "are one finding, with the measurement that would. LOG is the output of one or more of\n"
      "all_reduce_perf and its siblings, or a CSV table of sizes and times. RUN is a scenario, or "
      "a\n"
      "training's script, log or settings, as import reads them. Where no cause alone does, two "
      "at\n"
      "once are looked for. A TIMELINE on its own, of execute or import or a profile of PyTorch "
      "or\n"
      "Nsight Systems, shows where its time goes and what stands out. Examples:\n"
      "  rehearse diagnose nccl.log --cluster dgx-h100:nodes=4\n"
      "  rehearse diagnose nccl.log --cluster my.json --using mine.json --format json\n"
      "  rehearse diagnose table.csv --cluster dgx-a100:nodes=2 --kind all-reduce\n"
      "  rehearse diagnose scenarios/strategy-fsdp.json --measured \"2.3 s\"\n"
      "  rehearse diagnose scenarios/cpu-4d.json --timeline measured/timeline.json\n"
      "  rehearse diagnose measured/timeline.json\n"
      "  rehearse diagnose train.sh --cluster dgx-h100:nodes=4 --measured \"840 tokens/s/gpu\"\n"
      "  rehearse diagnose traces/\n"
      "  rehearse diagnose my.json --measured \"840 tokens/s/gpu\" --measured \"45 % MFU with "
      "cluster.nodes=1\"\n";
  syntax.positional = {"subject"};
  syntax.takes["subject"] = TakenFile({});
  AddTrialOptions(&syntax);
  syntax.takes["kind"] = TakenCollective();
  syntax.takes["using"] = TakenFile({".json"});
  syntax.takes["timeline"] = TakenFile({".json", ".json.gz"});
  syntax.takes["measured"] = {};  // words
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  syntax.options.add_options()("kind", text("KIND"),
                               "which collective it was, where the log does not say; which table "
                               "to diagnose, where there are several")(
      "using", text("FILE"),
      "a calibration of the healthy machine, which `rehearse compare --calibration` wrote")(
      "measured", po::value<std::vector<std::string>>()->composing()->value_name("VALUE"),
      "of a scenario: what was measured, such as \"2.3 s\", \"840 tokens/s/gpu\", \"14089 "
      "tokens/s\", "
      "\"45 % MFU\" or \"410 TFLOP/s/gpu\"; may be repeated, for runs that differ: \"1.9 s with "
      "cluster.nodes=8\", and parts of a profile: \"compute 0.8 s\", \"exposed 1.6 s\", \"idle 0 "
      "s\"")(
      "timeline", text("FILE"),
      "of a scenario: a measured timeline of it, which execute or import writes, or a profile of "
      "PyTorch or Nsight Systems, or a folder of them")(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "of a scenario: change it before it is read, as the run differed from it")(
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

// What was measured of a step: in words, and as a timeline, with what the latter shows by itself.
struct MeasuredRun {
  std::vector<MeasuredStep> steps;
  std::string parts;
  std::optional<bool> ranks_differ = std::nullopt;
};

// What `rehearse import` makes of the file; what that leaves open is said.
std::string ImportedText(const std::string& kind, const std::string& path,
                         const std::string& cluster = "") {
  ImportRequest request;
  request.files = {path};
  request.cluster = cluster;
  request.output = "-";
  Imported imported = FindImportKind(kind)->read(request);
  for (const std::string& remark : imported.remarks) Say(VisibleText(remark));
  return std::move(imported.text);
}

// A timeline of `execute` or `import`, or a profile that is imported here.
Subject TimelineSubject(const std::string& path) {
  const std::optional<std::string> kind = ForeignKind(path);
  if (!kind || !IsForeignProfile(*kind)) return RecogniseSubject(path);
  return {SubjectKind::kTimeline, InputName(path), ImportedText(*kind, path), std::nullopt};
}

// A measured timeline beside what the scenario expects.
void AddTimeline(const std::string& path, const JsonDocument& document, MeasuredRun* run) {
  const Subject subject = TimelineSubject(path);
  if (subject.kind != SubjectKind::kTimeline)
    throw Error({subject.path, 0, ""}, "expected a timeline, as execute and import write them");
  const JsonDocument timeline = JsonDocument::FromText(subject.text, subject.path);
  if (!timeline.Root().IsObject() || !timeline.Root().Has("schema"))
    throw Error({subject.path, 0, ""}, "found a scenario, expected a timeline that was measured");
  TimelineRecord measured = ReadTimelineRecord(timeline.Root(), subject.spans);
  Scenario scenario = ReadScenario(document);
  scenario.allow_out_of_memory = true;
  Rehearsal rehearsal = Rehearse(scenario);
  TimelineRecord expected =
      MakeRecord(scenario.name, rehearsal.schedule, std::move(rehearsal.timeline));
  if (measured.ranks() != expected.ranks())
    throw Error({subject.path, 0, ""},
                fmt::format("found a step of {} ranks, expected {}, as many as the scenario has",
                            measured.ranks(), expected.ranks()));
  TellFixedOps(measured, &expected);
  const Comparison comparison = Compare(expected, measured);
  if (comparison.ops.empty())
    throw Error({subject.path, 0, ""}, "the timeline has no op in common with the scenario's step");
  for (MeasuredStep& part : PartsMeasured(comparison)) run->steps.push_back(std::move(part));
  const std::optional<LateRank> late = LateRankOf(measured, expected);
  run->parts = PartsText(comparison, rehearsal.schedule, late);
  const std::string signs = SignsText(LookAt(measured));
  if (!signs.empty()) run->parts += signs + "\n";
  if (measured.ranks() > 1) run->ranks_differ = late.has_value();
}

// A measured timeline without its scenario.
std::string LookAtTimeline(const std::string& path, const po::variables_map& values,
                           OutputFormat format) {
  const std::set<std::string> suits = {"subject", "findings", "format"};
  for (const auto& [option, value] : values)
    if (!value.defaulted() && suits.count(option) == 0)
      throw Error(fmt::format(
          "--{} does not suit a timeline on its own; \"diagnose SCENARIO --timeline {}\" compares "
          "it with what is expected",
          option, VisibleText(path)));
  const Subject subject = TimelineSubject(path);
  const JsonDocument timeline = JsonDocument::FromText(subject.text, subject.path);
  const TimelineView view = LookAt(ReadTimelineRecord(timeline.Root(), subject.spans));
  constexpr size_t kMostOps = 12;
  return format == OutputFormat::kJson ? ToJson(view).dump(2) + "\n" : ToText(view, kMostOps);
}

bool IsTimeline(const JsonDocument& document) {
  return document.Root().IsObject() && document.Root().Has("schema") &&
         document.Root().At("schema").IsString() &&
         document.Root().At("schema").String() == kTimelineSchema;
}

// `is_run` says that the scenario was made of another program's file, for which --cluster says what
// it ran on.
std::string DiagnoseScenario(JsonDocument document, const po::variables_map& values, bool is_run,
                             OutputFormat format) {
  const std::set<std::string> suits = {"subject", "measured", "timeline",
                                       "set",     "findings", "format"};
  for (const auto& [option, value] : values)
    if (!value.defaulted() && suits.count(option) == 0 && !(is_run && option == "cluster"))
      throw Error(fmt::format("--{} is for logs; a scenario is changed by --set", option));
  if (values.count("measured") == 0 && values.count("timeline") == 0)
    throw Error({document.name(), 0, ""},
                "found a scenario, but nothing that was measured of it; give --measured \"2.3 s\", "
                "\"840 tokens/s/gpu\" or \"45 % MFU\", or --timeline FILE");
  if (values.count("set") > 0)
    for (const std::string& change : values["set"].as<std::vector<std::string>>())
      document.Set(change);
  MeasuredRun run;
  if (values.count("timeline") > 0)
    AddTimeline(values["timeline"].as<std::string>(), document, &run);
  if (values.count("measured") > 0)
    for (const std::string& text : values["measured"].as<std::vector<std::string>>())
      run.steps.push_back(ParseMeasuredStep(text));
  const StepDiagnosis diagnosis = DiagnoseStep(document, run.steps, run.ranks_differ);
  return format == OutputFormat::kJson
             ? ToJson(diagnosis).dump(2) + "\n"
             : run.parts + ToText(diagnosis, values["findings"].as<uint32_t>());
}

// A script, a log or a file of settings of a training, or a profile of one.
std::string DiagnoseForeign(const std::string& kind, const std::string& path,
                            const po::variables_map& values, OutputFormat format) {
  if (IsForeignProfile(kind)) return LookAtTimeline(path, values, format);
  if (!IsForeignRun(kind))
    throw Error({InputName(path), 0, ""},
                fmt::format("found {}, expected a log of nccl-tests, a scenario, a training's "
                            "script or a profile",
                            FindImportKind(kind)->what));
  const std::string cluster =
      values.count("cluster") > 0 ? values["cluster"].as<std::string>() : "";
  return DiagnoseScenario(JsonDocument::FromText(ImportedText(kind, path, cluster), path), values,
                          true, format);
}

std::string Diagnose(const std::string& given, const po::variables_map& values,
                     const std::string& usage, OutputFormat format) {
  const std::optional<std::string> kind = ForeignKind(given);
  if (kind && *kind != "nccl-tests") return DiagnoseForeign(*kind, given, values, format);
  std::error_code ignored;  // what cannot be examined cannot be read either
  if (std::filesystem::is_directory(given, ignored)) return LookAtTimeline(given, values, format);
  const std::string path = InputName(given);
  const std::string text = ReadInputFile(given);
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_packed = IsGzip(text);
  if (is_packed || (first != std::string::npos && (text[first] == '{' || text[first] == '/'))) {
    JsonDocument document = given == kStandardInput ? JsonDocument::FromText(text, path)
                                                    : JsonDocument::FromFile(given);
    return IsTimeline(document) ? LookAtTimeline(given, values, format)
                                : DiagnoseScenario(std::move(document), values, false, format);
  }
  if (!LooksLikeNcclLog(text))
    throw Error({path, 0, ""},
                "expected a log of nccl-tests, with a line that names its columns, a scenario, a "
                "training's script or a profile");
  if (values.count("measured") > 0)
    throw Error("--measured is for scenarios; what a log measured is in it");
  return DiagnoseLogFile(path, text, values, usage, format);
}

}  // namespace

int DiagnoseCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = DiagnoseSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("subject") == 0) throw Error("nothing to diagnose; usage: " + syntax.usage);
  const OutputFormat format = ReadFormat(values, kTextAndJson);
  const std::string found =
      Diagnose(values["subject"].as<std::string>(), values, syntax.usage, format);
  std::fputs(found.c_str(), stdout);
  return 0;
}

}  // namespace rehearse
