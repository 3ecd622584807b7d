// rehearse plan SCENARIO: the schedule of a scenario as a file.
#include <cstdio>

#include <fmt/format.h>

#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_json.h"
#include "tools/command.h"
#include "tools/scenario_options.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax PlanSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse plan SCENARIO [options]";
  syntax.explanation =
      "Plans the schedule that every GPU of the scenario would follow, as rehearse run plays it,\n"
      "and writes it as a file (rehearse.schedule.v1; sim/schedule/README.md tells the format).\n"
      "It can be changed and played: its timeline then has the same hash. Examples:\n"
      "  rehearse plan scenarios/axonn-gpt20b-perlmutter.json -o step.schedule.json.gz\n"
      "  rehearse run step.schedule.json.gz --cluster perlmutter:nodes=4\n"
      "  rehearse plan scenarios/cpu-4d.json --set strategy.overlap_all_gather=false | less\n"
      "A schedule's file is written again, in full:\n"
      "  rehearse plan scenarios/schedules/two-ranks.json --cluster switch:devices=2\n";
  syntax.positional = {"scenario"};
  AddClusterOption(&syntax);
  auto add = syntax.options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read; may be repeated");
  add("allow-oom", "write a plan that does not fit the devices' memory all the same");
  add("output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
      "where to write it: gzipped where the name ends in .gz; - is standard output");
  syntax.takes["output"] = TakenOutput({".json", ".json.gz"});
  return syntax;
}

int PlanCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = PlanSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const std::string path = values["output"].as<std::string>();
  CheckWritable(path);
  const Scenario scenario = ReadScenarioArgument(syntax, values);
  const Job job = PrepareOne(scenario, "rehearse plan");
  const std::string text = WriteSchedule(job.schedule, {job.name, scenario.description});
  if (text.size() > kLargestJson) {
    throw Error(fmt::format("the schedule is a text of {}, and only {} could be read again",
                            Print(Bytes(static_cast<double>(text.size()))),
                            Print(Bytes(static_cast<double>(kLargestJson)))));
  }
  WriteFileAtomically(path, path.ends_with(".gz") ? Gzip(text) : text);
  return 0;
}

}  // namespace rehearse
