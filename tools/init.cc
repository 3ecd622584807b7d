// rehearse init: a first scenario, with comments.
#include <cstdio>

#include "scenarios/playing/first_scenario.h"
#include "sim/base/output_file.h"
#include "tools/command.h"

namespace rehearse {

namespace po = boost::program_options;

int InitCommand(const std::vector<std::string>& arguments) {
  FirstScenarioRequest request;
  CommandSyntax syntax;
  syntax.usage = "rehearse init [options]";
  syntax.explanation =
      "Writes a first scenario that runs, with comments: a known model on a known cluster, with a\n"
      "mesh that fits the devices' memory. Examples:\n"
      "  rehearse init -o my.json\n"
      "  rehearse init --strategy fsdp --cluster dgx-h100:nodes=4 --model gpt-20b -o my.json\n";
  const auto text = [](std::string* value, const char* name) {
    return po::value<std::string>(value)->default_value(*value)->value_name(name);
  };
  syntax.options.add_options()("strategy", text(&request.strategy, "KIND"),
                               "a row of `rehearse list strategies`")(
      "cluster", text(&request.cluster, "CLUSTER"),
      "preset, preset with changes, or a cluster file")("model", text(&request.model, "NAME"),
                                                        "a row of `rehearse list models`")(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "where to write it; standard output if not given");
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const std::string file = FirstScenario(request);
  if (values.count("output") > 0) {
    WriteFileAtomically(values["output"].as<std::string>(), file);
  } else {
    std::fputs(file.c_str(), stdout);
  }
  return 0;
}

}  // namespace rehearse
