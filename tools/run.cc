// rehearse run SCENARIO: simulate one scenario.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "scenarios/rehearsal.h"
#include "sim/error.h"
#include "sim/output_file.h"
#include "sim/units.h"
#include "tools/command.h"

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

uint32_t ParseRank(const std::string& text, const std::string& whole, uint32_t ranks) {
  size_t end = 0;
  unsigned long rank = ranks;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
      text.size() < 10) {
    rank = std::stoul(text, &end);
  }
  if (rank >= ranks) {
    throw Error(fmt::format("--ranks: found \"{}\", expected ranks from 0 to {} such as \"0,4-7\"",
                            whole, ranks - 1));
  }
  return static_cast<uint32_t>(rank);
}

std::vector<uint32_t> ParseRanks(const std::string& text, uint32_t ranks) {
  std::vector<uint32_t> result;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    const size_t dash = part.find('-');
    const uint32_t first = ParseRank(part.substr(0, dash), text, ranks);
    const uint32_t last =
        dash == std::string::npos ? first : ParseRank(part.substr(dash + 1), text, ranks);
    for (uint32_t rank = first; rank <= last; ++rank) result.push_back(rank);
    begin = comma + 1;
  }
  return result;
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
  picture.ranks = ParseRanks(values["ranks"].as<std::string>(), scenario.cluster->device_count());

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
