// rehearse init: a first scenario, with comments.
#include <cstdio>
#include <utility>

#include "scenarios/playing/first_scenario.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/strategy_reader.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/output_file.h"
#include "tools/command.h"

namespace rehearse {

namespace po = boost::program_options;

CommandSyntax InitSyntax() {
  const FirstScenarioRequest usual;
  CommandSyntax syntax;
  syntax.usage = "rehearse init [options]";
  syntax.explanation =
      "Writes a first scenario, ready to run and with comments: a known model on a known\n"
      "cluster, on a mesh that fits the devices' memory. Examples:\n"
      "  rehearse init -o my.json\n"
      "  rehearse init --strategy fsdp --cluster dgx-h100:nodes=4 --model gpt-20b -o my.json\n";
  const auto text = [](const std::string& standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  auto add = syntax.options.add_options();
  add("strategy", text(usual.strategy, "KIND"), "one of `rehearse list strategies`");
  add("cluster", text(usual.cluster, "CLUSTER"), "preset, preset with changes, or a cluster file");
  add("model", text(usual.model, "NAME"), "one of `rehearse list models`");
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
  request.strategy = text("strategy");
  const std::string file = FirstScenario(request);
  if (values.count("output") > 0) {
    WriteFileAtomically(text("output"), file);
  } else {
    std::fputs(file.c_str(), stdout);
  }
  return 0;
}

}  // namespace rehearse
