#include "tools/scenario_options.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace rehearse {

namespace po = boost::program_options;

void AddScenarioOptions(CommandSyntax* syntax) {
  syntax->positional = {"scenario"};
  auto add = syntax->options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read, e.g. cluster=perlmutter:nodes=8 or "
      "strategy.depth=8; may be repeated");
  add("fidelity", po::value<std::string>()->value_name("NAME"),
      "formula, fluid or step; overrides the scenario's");
  add("calibration", po::value<std::string>()->value_name("FILE"),
      "link efficiencies and overheads that `rehearse compare --calibration` wrote; overrides the "
      "scenario's");
  add("allow-oom", "play a plan that does not fit the devices' memory all the same");
  add("no-fold", "simulate every rank, not one of each class of ranks that behave alike");
}

Scenario ReadScenarioArgument(const CommandSyntax& syntax, const po::variables_map& values) {
  if (values.count("scenario") == 0) {
    throw Error("no scenario given; usage: " + syntax.usage +
                "\ntry: " + syntax.usage.substr(0, syntax.usage.find("SCENARIO")) +
                "scenarios/axonn-gpt20b-perlmutter.json");
  }
  JsonDocument document = JsonDocument::FromFile(values["scenario"].as<std::string>());
  if (values.count("set") > 0) {
    for (const std::string& change : values["set"].as<std::vector<std::string>>()) {
      document.Set(change);
    }
  }
  if (values.count("fidelity") > 0) {
    document.Set("simulator.fidelity=" + values["fidelity"].as<std::string>());
  }
  if (values.count("calibration") > 0) {
    // Relative to where the command runs, not to the scenario.
    const std::filesystem::path path = values["calibration"].as<std::string>();
    document.Set("calibration=" + nlohmann::json(std::filesystem::absolute(path).string()).dump());
  }
  Scenario scenario = ReadScenario(document);
  scenario.allow_out_of_memory = values.count("allow-oom") > 0;
  if (values.count("no-fold") > 0) scenario.lowering.fold = false;
  return scenario;
}

}  // namespace rehearse
