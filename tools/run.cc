// rehearse run SCENARIO: simulate one scenario.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "scenarios/rehearsal.h"
#include "sim/error.h"
#include "sim/output_file.h"
#include "sim/units.h"
#include "tools/command.h"
#include "tools/ranks.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

CommandSyntax Syntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse run SCENARIO [options]";
  syntax.explanation =
      "Plans the schedule that every GPU of the scenario would follow, plays it on the\n"
      "modelled cluster, and prints where the time goes. Examples:\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json --set "
      "strategy.overlap_all_gather=false\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json --out out --window 300ms-420ms\n";
  syntax.positional = {"scenario"};
  syntax.options.add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read, e.g. cluster=perlmutter:nodes=8 or "
      "strategy.depth=8; may be repeated")("fidelity", po::value<std::string>()->value_name("NAME"),
                                           "formula, fluid or step; overrides the scenario's")(
      "no-fold", "simulate every rank, not one of each class of ranks that behave alike")(
      "format", po::value<std::string>()->default_value("text")->value_name("text|json"),
      "what to print")(
      "out", po::value<std::string>()->value_name("DIR"),
      "also write result.json, trace.pftrace (open it in ui.perfetto.dev) and timeline.svg there")(
      "ranks", po::value<std::string>()->default_value("0")->value_name("A,B-C"),
      "ranks that timeline.svg shows")(
      "window", po::value<std::string>()->value_name("FROM-TO"),
      "part of the step that timeline.svg shows, e.g. 100ms-250ms");
  return syntax;
}

void ParseWindow(const std::string& text, Time step, PictureOptions* picture) {
  const size_t dash = text.find('-');
  if (dash == std::string::npos) {
    throw Error(
        fmt::format("--window: found \"{}\", expected FROM-TO such as \"100ms-250ms\"", text));
  }
  picture->from = ToTime(ParseDuration(text.substr(0, dash)));
  picture->to = ToTime(ParseDuration(text.substr(dash + 1)));
  if (picture->from >= picture->to || picture->from >= step) {
    throw Error(fmt::format("--window: \"{}\" is empty or begins after the step's end at {}", text,
                            Print(ToSeconds(step))));
  }
  picture->to = std::min(picture->to, step);
}

void WriteOutputs(const Rehearsal& rehearsal, const std::string& folder,
                  const PictureOptions& picture) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("cannot make folder {}: {}", folder, error.message()));
  WriteFileAtomically(folder + "/result.json", ToJson(rehearsal.result).dump(2) + "\n");
  WriteFileAtomically(
      folder + "/trace.pftrace",
      PerfettoTrace(rehearsal.schedule, Unfolded(rehearsal.timeline), rehearsal.names));
  WriteFileAtomically(folder + "/timeline.svg", TimelineSvg(rehearsal.schedule, rehearsal.timeline,
                                                            rehearsal.names, picture));
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = Syntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("scenario") == 0) {
    throw Error("no scenario given; usage: " + syntax.usage +
                "\ntry: rehearse run scenarios/axonn-gpt20b-perlmutter.json");
  }
  const OutputFormat format = ParseFormat(values["format"].as<std::string>());
  JsonDocument document = JsonDocument::FromFile(values["scenario"].as<std::string>());
  if (values.count("set") > 0) {
    for (const std::string& change : values["set"].as<std::vector<std::string>>()) {
      document.Set(change);
    }
  }
  if (values.count("fidelity") > 0) {
    document.Set("simulator.fidelity=" + values["fidelity"].as<std::string>());
  }
  Scenario scenario = ReadScenario(document);
  if (values.count("no-fold") > 0) scenario.lowering.fold = false;
  PictureOptions picture;
  picture.ranks =
      ParseRanks("--ranks", values["ranks"].as<std::string>(), scenario.cluster->device_count());

  const Rehearsal rehearsal = Rehearse(scenario, {.record_link_loads = values.count("out") > 0});
  if (values.count("window") > 0) {
    ParseWindow(values["window"].as<std::string>(), rehearsal.timeline.step, &picture);
  }
  if (values.count("out") > 0) {
    WriteOutputs(rehearsal, values["out"].as<std::string>(), picture);
  }
  const std::string text = format == OutputFormat::kJson ? ToJson(rehearsal.result).dump(2) + "\n"
                                                         : ToText(rehearsal.result, ColorsWanted());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace rehearse
