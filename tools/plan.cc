// rehearse plan SCENARIO: the schedule of a scenario as a file.
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/playing/step_products.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "sim/base/read_options.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/schedule/jobs.h"
#include "sim/schedule/schedule_json.h"
#include "tools/command.h"
#include "tools/foreign/traces/chakra/chakra_write.h"
#include "tools/foreign/traces/goal/goal.h"
#include "tools/scenario_options.h"
#include "tools/terminal.h"
#include "topology/cluster/cluster.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace po = boost::program_options;

namespace {

std::string CountOf(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Seconds TimeOf(const Cluster& cluster, uint32_t device, const Op& op) {
  return TimeInSteps(cluster.DeviceOf(device), std::get<Compute>(op.work),
                     op.tag.phase == Phase::kBackward);
}

void CheckTracesFolder(const std::string& folder) {
  if (folder.empty() || IsStandardOutput(folder))
    throw Error(fmt::format("--chakra: found \"{}\", expected a folder", folder));
}

// Writes execution traces of the job on its devices, and returns what to print about them.
std::string WriteTraces(const Cluster& cluster, const Job& job, const ScheduleTitle& title,
                        const std::string& folder) {
  ChakraDevices devices;
  std::map<const DeviceSpec*, uint32_t> kinds;
  for (const uint32_t device : job.placement) {
    const auto kind =
        kinds.emplace(&cluster.DeviceOf(device), static_cast<uint32_t>(kinds.size())).first;
    devices.kind_of_rank.push_back(kind->second);
  }
  devices.time = [&](uint32_t rank, const Op& op) {
    return TimeOf(cluster, job.placement[rank], op);
  };
  const ChakraFiles files = WriteChakra(job.schedule, title, devices, folder);
  std::string text =
      fmt::format("{}   {} of Chakra, {} in {} that differ{}; groups of ranks in {}\n",
                  VisibleText(folder), CountOf(files.ranks, "trace"), CountOf(files.nodes, "node"),
                  files.distinct, files.distinct == 1 ? "s" : "", files.groups);
  if (files.drift > Seconds(0)) {
    text += fmt::format(
        "  durations are rounded up to whole microseconds: in other tools a rank computes\n"
        "  up to {} longer\n",
        Print(files.drift));
  }
  return text;
}

// Writes the job as messages, on all devices of its cluster.
std::string WriteMessages(const Scenario& scenario, const Job& job, const std::string& path) {
  const Cluster& cluster = *scenario.cluster;
  const Schedule schedule = Join({job}, cluster.device_count());
  Router router(cluster, scenario.routing);
  const GoalText goal =
      WriteGoal(schedule, router, scenario.lowering.channels, scenario.lowering.nccl,
                [&](uint32_t rank, const Op& op) { return TimeOf(cluster, rank, op); });
  WriteFileAtomically(path, goal.text);
  return fmt::format(
      "{}   GOAL of {}: {}, {}\n"
      "  not included: the links that messages take, what NCCL waits for\n",
      VisibleText(path), CountOf(schedule.ranks(), "rank"),
      CountOf(goal.computations, "computation"), CountOf(goal.messages, "message"));
}

}  // namespace

CommandSyntax PlanSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse plan SCENARIO [options]";
  syntax.explanation =
      "Plans the schedule that every GPU of the scenario would follow, as rehearse run plays it,\n"
      "and writes it as a file (rehearse.schedule.v1; sim/schedule/README.md has the format).\n"
      "The file can be edited and played; unchanged, it gives the same timeline hash. Examples:\n"
      "  rehearse plan scenarios/axonn-gpt20b-perlmutter.json -o step.schedule.json.gz\n"
      "  rehearse run step.schedule.json.gz --cluster perlmutter:nodes=4\n"
      "  rehearse plan scenarios/cpu-4d.json --set strategy.overlap_all_gather=false | less\n"
      "As Chakra execution traces (NAME.RANK.et, and the groups of ranks as JSON), which\n"
      "ASTRA-sim reads and rehearse import chakra turns back into the same schedule:\n"
      "  rehearse plan scenarios/axonn-gpt20b-perlmutter.json --chakra traces\n"
      "As GOAL, which LogGOPSim and htsim read, with collectives as the messages of their\n"
      "algorithm:\n"
      "  rehearse plan scenarios/cpu-4d.json --goal step.goal\n"
      "Its products and attention cores, with counts and the model's times, as a file that\n"
      "--device-points reads once the times have been measured:\n"
      "  rehearse plan scenarios/axonn-gpt20b-perlmutter.json --products products.csv\n"
      "A schedule file is written out again, in full:\n"
      "  rehearse plan scenarios/schedules/two-ranks.json --cluster switch:devices=2\n";
  syntax.positional = {"scenario"};
  AddClusterOption(&syntax);
  auto add = syntax.options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read; may be repeated");
  add("allow-oom", "write the plan even if it does not fit the devices' memory");
  add("chakra", po::value<std::string>()->value_name("DIR"),
      "write execution traces into this new folder; the schedule itself is written only with -o");
  add("goal", po::value<std::string>()->value_name("FILE"),
      "write GOAL there; the schedule itself is written only with -o");
  add("products", po::value<std::string>()->value_name("FILE.csv"),
      "write the step's products and attention cores there, each with how often all ranks together "
      "do it and how long the device's model says that it takes; the schedule itself is written "
      "only with -o");
  syntax.takes["products"] = TakenOutput({".csv"});
  add("output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
      "where to write it, gzipped if the name ends in .gz; - is standard output");
  syntax.takes["goal"] = TakenOutput({".goal"});
  syntax.takes["output"] = TakenOutput({".json", ".json.gz"});
  return syntax;
}

int PlanCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = PlanSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const std::string path = values["output"].as<std::string>();
  const bool has_traces = values.count("chakra") > 0;
  const bool has_goal = values.count("goal") > 0;
  const bool has_products = values.count("products") > 0;
  const bool has_file =
      (!has_traces && !has_goal && !has_products) || !values["output"].defaulted();
  if (has_traces) CheckTracesFolder(values["chakra"].as<std::string>());
  if (has_file) CheckWritable(path);
  if (has_goal) CheckWritable(values["goal"].as<std::string>());
  if (has_products) CheckWritable(values["products"].as<std::string>());
  const Scenario scenario = ReadScenarioArgument(syntax, values);
  ProgressLine progress(ProgressWanted());
  const Job job = PrepareOne(scenario, "rehearse plan", progress);
  progress.Clear();
  const ScheduleTitle title = {job.name, scenario.description};
  if (has_traces) {
    PrintBeside(has_file ? path : "",
                WriteTraces(*scenario.cluster, job, title, values["chakra"].as<std::string>()));
  }
  if (has_goal) {
    const std::string goal = values["goal"].as<std::string>();
    PrintBeside(has_file && IsStandardOutput(path) ? path : goal,
                WriteMessages(scenario, job, goal));
  }
  if (has_products) {
    WriteFileAtomically(values["products"].as<std::string>(),
                        ToCsv(ProductsOf(job.schedule, job.placement, *scenario.cluster)));
  }
  if (!has_file) return 0;
  const std::string text = WriteSchedule(job.schedule, title);
  if (text.size() > kLargestDocument) {
    throw Error(
        fmt::format("the schedule would be a text of {}, of which only {} could be read again",
                    Print(Bytes(static_cast<double>(text.size()))),
                    Print(Bytes(static_cast<double>(kLargestDocument)))));
  }
  WriteFileAtomically(path, path.ends_with(".gz") ? Gzip(text) : text);
  return 0;
}

}  // namespace rehearse
