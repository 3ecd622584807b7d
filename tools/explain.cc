// rehearse explain SCENARIO: why a step takes as long as it does.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/explaining/explanation.h"
#include "scenarios/explaining/explanation_table.h"
#include "scenarios/explaining/memory_picture.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/interruption.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/foreign/traces/pytorch_memory/memory_snapshot.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/scenario_options.h"
#include "tools/terminal.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax ExplainSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse explain SCENARIO|SCHEDULE [options]";
  syntax.explanation =
      "Simulates the scenario and says why the step takes as long as it does: the critical path\n"
      "and the slack of what is not on it, communication that nothing hides, links that held\n"
      "transfers back and who shared them, and how much shorter the step would be if one\n"
      "figure were 10 % better (by simulating again); of a pipeline, what other stages would\n"
      "give. Examples:\n"
      "  rehearse explain scenarios/axonn-gpt20b-perlmutter.json\n"
      "  rehearse explain scenarios/axonn-weak-80b.json --rows 20\n"
      "  rehearse explain scenarios/axonn-weak-80b.json --format csv --table links\n"
      "  rehearse explain scenarios/llama-70b-fsdp-tp.json --memory\n"
      "  rehearse explain scenarios/llama-70b-fsdp-tp.json --memory --snapshot snapshot.pickle\n";
  AddScenarioOptions(&syntax);
  auto add = syntax.options.add_options();
  add("rows", Whole("N", "8", 0u, 1'000'000'000u), "at most N rows of each list (text only)");
  add("memory", po::bool_switch(),
      "instead: memory of the fullest rank over time, what lives at its peak, and what would lower "
      "it (text and json)");
  add("snapshot", po::value<std::string>()->value_name("FILE"),
      "with --memory: beside it what PyTorch's allocator wrote down "
      "(torch.cuda.memory._dump_snapshot: the pickle, the same as JSON, or the page of "
      "_memory_viz.py trace_plot)");
  add("snapshot-device", Whole("N", nullptr, 0u, kMostSnapshotDevices - 1),
      "of the snapshot's devices, this one (else the one that had most reserved)");
  AddFormatOption(syntax.options, kTableFormats, "the rows that --table names");
  std::string lists = "what a row of csv and jsonl is:";
  std::vector<std::string> names;
  for (const ExplanationList& list : ExplanationLists()) {
    names.emplace_back(list.name);
    lists += fmt::format("\n{}: {}", list.name, list.row);
  }
  syntax.takes["table"] = TakenName(std::move(names));
  add("table", po::value<std::string>()->value_name("NAME"), lists.c_str());
  return syntax;
}

namespace {

std::optional<MemorySnapshot> ReadSnapshot(const po::variables_map& values) {
  if (values.count("snapshot") == 0) {
    if (values.count("snapshot-device") > 0)
      throw Error("--snapshot-device is a device of a --snapshot, and there is none");
    return {};
  }
  const std::string path = values["snapshot"].as<std::string>();
  std::optional<uint32_t> device;
  if (values.count("snapshot-device") > 0) device = values["snapshot-device"].as<uint32_t>();
  return ReadMemorySnapshot(ReadInputFile(path, "memory snapshot", {.size = InputSize::kLarge}),
                            InputName(path), device);
}

int ExplainMemory(const Scenario& scenario, const po::variables_map& values, OutputFormat format) {
  if (IsTable(format))
    throw Error(fmt::format("--memory prints text and json, not {}", Name(format)));
  const std::optional<MemorySnapshot> snapshot = ReadSnapshot(values);
  const Stoppable stoppable;
  ProgressView view = ProgressWanted();
  view.is_stopped = IsStopAsked;
  ProgressLine progress(view);
  const MemoryPicture picture = PictureMemory(scenario, progress);
  progress.Clear();
  const std::string name =
      snapshot ? VisibleText(InputName(values["snapshot"].as<std::string>())) : "";
  std::string text;
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json json = ToJson(picture);
    if (snapshot) json["measured"] = ToJson(*snapshot, name);
    text = json.dump(2) + "\n";
  } else {
    text = ToText(picture, ColorsWanted());
    if (snapshot) text += ToText(*snapshot, name, picture, ColorsWanted());
  }
  std::fputs(text.c_str(), stdout);
  return StopCode();
}

}  // namespace

int ExplainCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ExplainSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const OutputFormat format = ReadFormat(values, kTableFormats);
  if (values.count("table") > 0 && !IsTable(format))
    throw Error(
        fmt::format("--table is for --format csv and jsonl; {} prints all lists", Name(format)));
  const ExplanationList& list = values.count("table") > 0
                                    ? FindExplanationList(values["table"].as<std::string>())
                                    : ExplanationLists().front();
  const Scenario scenario = ReadScenarioArgument(syntax, values);
  if (values["memory"].as<bool>()) return ExplainMemory(scenario, values, format);
  if (values.count("snapshot") > 0 || values.count("snapshot-device") > 0)
    throw Error("a snapshot of memory stands beside --memory, which was not given");
  const Stoppable stoppable;
  ProgressView view = ProgressWanted();
  view.is_stopped = IsStopAsked;
  ProgressLine progress(view);
  const Explanation explanation = Explain(scenario, progress);
  progress.Clear();
  const std::string text = IsTable(format) ? Print(list.table(explanation), format)
                           : format == OutputFormat::kJson
                               ? ToJson(explanation).dump(2) + "\n"
                               : ToText(explanation, values["rows"].as<uint32_t>(), ColorsWanted());
  std::fputs(text.c_str(), stdout);
  if (!explanation.left_out.empty()) {
    std::fflush(stdout);
    Say(
        fmt::format("{}: {} of {} steps that might be shorter were not simulated; all else that is "
                    "shown is complete",
                    StopWords(), explanation.left_out.size(),
                    explanation.left_out.size() + explanation.sensitivities.size() +
                        explanation.stages.size()));
  }
  return StopCode();
}

}  // namespace rehearse
