// rehearse init: a first scenario, with comments.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "scenarios/playing/first_scenario.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/strategy_reader.h"
#include "scenarios/searching/best_scenario.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/interruption.h"
#include "sim/base/output_file.h"
#include "tools/command.h"
#include "tools/number_options.h"
#include "tools/terminal.h"

namespace rehearse {

namespace po = boost::program_options;

namespace {

bool IsDecoder(const std::string& model) {
  return std::any_of(ModelPresets().begin(), ModelPresets().end(), [&](const ModelPreset& preset) {
    return preset.name == model && preset.kind == "decoder";
  });
}

// Networks of images have no space that a search knows by itself.
std::string TextOf(FirstScenarioRequest request, const po::variables_map& values) {
  const bool has_strategy = values.count("strategy") > 0;
  if (has_strategy && (!values["sequence"].defaulted() || values.count("batch") > 0))
    throw Error("--sequence and --batch are for a search; expected no --strategy");
  if (has_strategy) request.strategy = values["strategy"].as<std::string>();
  if (has_strategy || !IsDecoder(request.model)) return FirstScenario(request);
  BestScenarioRequest best;
  best.cluster = request.cluster;
  best.model = request.model;
  best.sequence = values["sequence"].as<uint32_t>();
  if (values.count("batch") > 0) best.batch = values["batch"].as<uint32_t>();
  if (best.batch == uint64_t{0}) throw Error("--batch: found 0, expected at least 1");
  ProgressLine progress(ProgressWanted());
  best.observer = &progress;
  best.is_stopped = IsStopAsked;
  const Stoppable stoppable;
  std::string file = BestScenario(best);
  progress.Clear();
  return file;
}

}  // namespace

CommandSyntax InitSyntax() {
  const FirstScenarioRequest usual;
  CommandSyntax syntax;
  syntax.usage = "rehearse init [options]";
  syntax.explanation =
      "Writes a first scenario, ready to run and with comments: a known model on a known\n"
      "cluster, in the best configuration that a search finds; or with a strategy that is named,\n"
      "on the first mesh that fits the devices' memory. Examples:\n"
      "  rehearse init -o my.json\n"
      "  rehearse init --model deepseek-v3 --cluster dgx-h100:nodes=32 -o my.json\n"
      "  rehearse init --strategy fsdp --cluster dgx-h100:nodes=4 --model gpt-20b -o my.json\n";
  const auto text = [](const std::string& standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  auto add = syntax.options.add_options();
  add("strategy", po::value<std::string>()->value_name("KIND"),
      "one of `rehearse list strategies`, instead of the best configuration of all");
  add("cluster", text(usual.cluster, "CLUSTER"), "preset, preset with changes, or a cluster file");
  add("model", text(usual.model, "NAME"), "one of `rehearse list models`");
  add("sequence", Whole("N", "4096", 1u, 1u << 24), "tokens of a sequence (without --strategy)");
  add("batch", po::value<uint32_t>()->value_name("N"),
      "sequences of a step (without --strategy; about 4 million tokens)");
  add("output,o", po::value<std::string>()->value_name("FILE"),
      "where to write it; standard output if not given");
  std::vector<std::string> strategies;
  for (const StrategyKind& kind : StrategyKinds()) strategies.push_back(kind.name);
  syntax.takes["strategy"] = TakenName(std::move(strategies));
  std::vector<std::string> models;
  for (const ModelPreset& preset : ModelPresets()) models.push_back(preset.name);
  syntax.takes["model"] = TakenName(std::move(models));
  syntax.takes["output"] = TakenOutput({".json"});
  return syntax;
}

int InitCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = InitSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  FirstScenarioRequest request;
  request.cluster = text("cluster");
  if (request.cluster == kStandardInput)
    throw Error("--cluster: the scenario names the cluster, but standard input has no name");
  request.model = text("model");
  const std::string file = TextOf(request, values);
  if (values.count("output") > 0) {
    WriteFileAtomically(text("output"), file);
  } else {
    std::fputs(file.c_str(), stdout);
  }
  return 0;
}

}  // namespace rehearse
