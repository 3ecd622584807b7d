// rehearse search SCENARIO: finds the best configuration.
#include "scenarios/searching/search.h"

#include <cstdio>

#include <fmt/format.h>

#include "scenarios/searching/search_picture.h"
#include "scenarios/searching/search_report.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/base/moved_paths.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/many_ranks.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/results_options.h"
#include "tools/search_keys.h"
#include "tools/terminal.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMostShown = 1'000'000;

// Paths in the scenario are relative to its folder.
nlohmann::json Movable(nlohmann::json scenario, const std::string& from) {
  constexpr const char* kKeys[] = {"cluster", "calibration", "device_points", "costs"};
  MakeAbsolute(&scenario, kKeys, from);
  if (scenario.contains("cluster")) MakeAbsolute(&scenario["cluster"], kKeys, from);
  return scenario;
}

void WriteScenarios(const Search& search, const FoundPoints& found, size_t top,
                    const std::string& folder) {
  MakeFolder(folder);
  size_t written = 0;
  for (const FoundPoint& point : found.points) {
    if (written == top) break;
    nlohmann::json scenario =
        Movable(ScenarioOf(search, point.point).value(), search.scenario.name());
    scenario["name"] =
        fmt::format("{} ({})", scenario.value("name", "search"), search.space.NameOf(point.point));
    WriteFileAtomically(fmt::format("{}/{:03}.json", folder, ++written), scenario.dump(2) + "\n");
  }
}

// Checks the picture's options before minutes of work.
void CheckPicture(const std::string& svg, const Search& search, bool has_formulas) {
  if (search.decide == Decision::kFormula ||
      (search.objectives.size() == 1 && search.decide == Decision::kSimulation && !has_formulas))
    throw Error(
        "--svg draws simulations beside the formula's numbers; expected --decide both, or "
        "--quality");
  CheckWritable(svg);
}

std::string PrintSearch(const Search& search, const FoundPoints& found, const SearchWords& words,
                        OutputFormat format) {
  if (IsTable(format)) return Print(TableOf(search, found), format);
  return format == OutputFormat::kJson ? ToJson(search, found, words).dump(2) + "\n"
                                       : ToText(search, found, words);
}

}  // namespace

CommandSyntax SearchSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse search SCENARIO [options]";
  syntax.explanation =
      "Tries configurations of a scenario and shows the best: all ways to write its ranks as a\n"
      "product of its strategy's axes, with all numbers of micro-batches, or what its \"search\"\n"
      "section says (`rehearse schema scenario`). Without a strategy, it tries all that a "
      "framework\n"
      "lets one choose: of experts also passes in pairs (pipeline.pair_passes), multiprocessors "
      "of\n"
      "communication (simulator.communication_multiprocessors) and the dispatcher\n"
      "(simulator.collectives). A formula, from the strategy's paper or closed\n"
      "forms without contention, chooses what is simulated; impossible configurations are\n"
      "counted by reason. With \"per\", the best for each choice of an axis stands beside those "
      "of\n"
      "the others, each with its price. Ctrl-C shows the best so far; ranks under mpirun share "
      "the\n"
      "simulations. Examples:\n"
      "  rehearse search scenarios/axonn-gpt20b-perlmutter.json\n"
      "  rehearse search scenarios/axonn-gpt20b-perlmutter.json --decide simulation --quality\n"
      "  rehearse search mine.json --clusters dgx-h100:nodes=16,dgx-b200:nodes=16\n"
      "  rehearse search mine.json --objective time,memory --method descent --out best\n";
  syntax.positional = {"scenario"};
  syntax.takes["scenario"] = TakenFile({".json"});
  syntax.takes["svg"] = TakenOutput({".svg"});
  AddSearchKeys(&syntax);
  auto add = syntax.options.add_options();
  add("top", Whole("K", "10", 1u, kMostShown), "show the K best, and write them with --out");
  add("explain", "compare the best with the second best: where the time is lost");
  add("quality",
      "simulate everything and say how good the formula is (average precision at 5, Kendall's "
      "tau, regret)");
  add("out", po::value<std::string>()->value_name("DIR"),
      "write the K best as scenarios for rehearse run: 001.json and so on");
  add("svg", po::value<std::string>()->value_name("FILE"),
      "draw what was simulated beside the formula's numbers, or two objectives with their front");
  AddResultsOptions(&syntax);
  AddThreadsOption(&syntax.options, "points");
  add("allow-oom", "treat configurations as possible that do not fit the devices' memory");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read, e.g. search.keep=0.1; may be repeated");
  AddFormatOption(syntax.options, kTableFormats, "a row for each possible point");
  return syntax;
}

int SearchCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = SearchSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("scenario") == 0)
    throw Error("no scenario given; usage: " + syntax.usage +
                "\ntry: rehearse search scenarios/axonn-gpt20b-perlmutter.json");
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const std::string folder = FolderOption(values, "out");
  const std::string picture = values.count("svg") > 0 ? values["svg"].as<std::string>() : "";
  SearchWords words;
  words.top = values["top"].as<uint32_t>();
  words.explain = values.count("explain") > 0;
  words.quality = values.count("quality") > 0;

  JsonDocument document = JsonDocument::FromFile(values["scenario"].as<std::string>());
  if (HasArrivals(document))
    document.Root().Fail("\"arrivals\" are jobs as they come, which only `rehearse run` plays");
  if (values.count("set") > 0)
    for (const std::string& change : values["set"].as<std::vector<std::string>>())
      document.Set(change);
  SetSearchKeys(values, &document);
  if (words.quality) {
    if (values.count("decide") > 0 && values["decide"].as<std::string>() != "simulation")
      throw Error("--quality simulates everything; expected --decide simulation, or none");
    document.Set("search.decide=\"simulation\"", {"--quality", 0, ""});
  }
  const Search search = ReadSearch(document);
  if (!picture.empty()) CheckPicture(picture, search, words.quality);

  ResultsOptions results = ReadResultsOptions(values, "");
  if (words.quality && !results.shard.IsWhole())
    throw Error("--quality needs all points, but --shard simulates some; expected one of them");

  SearchRun run;
  run.shard = results.shard;
  run.threads = ThreadsOption(values);
  run.all_formulas = words.quality;
  run.explains_bests = search.per_axis.has_value();  // beside each other
  run.allow_out_of_memory = values.count("allow-oom") > 0;
  run.is_stopped = IsStopAsked;
  const Stoppable stoppable;
  const auto play = [&]() -> int {
    run.stores = results.Open();
    ProgressLine progress(ProgressWanted());
    run.observer = &progress;
    const FoundPoints found = RunSearch(search, run);
    progress.Clear();
    if (!folder.empty()) WriteScenarios(search, found, words.top, folder);
    const std::string text = PrintSearch(search, found, words, format);
    if (picture.empty()) {
      std::fputs(text.c_str(), stdout);
    } else {
      WriteFileAtomically(picture, SearchSvg(search, found));
      PrintBeside(picture, text);
    }
    if (found.was_stopped) {
      std::fflush(stdout);
      Say(fmt::format("{}: the best of the {} points that were looked at, of {:.0f}; {}",
                      StopWords(), found.looked_at, search.space.Size(),
                      results.path.empty()
                          ? "with --results FILE what is simulated is kept, and the same command "
                            "goes on there"
                          : fmt::format("what was simulated is kept in {}; the same command goes "
                                        "on there",
                                        VisibleText(results.path))));
    }
    return StopCode();
  };
  const std::optional<Launch> launch = SharingLaunch(results);
  if (!launch) return play();
  const auto share = [&](const RankShare& rank) {
    SearchRun part = run;
    part.leases = rank.leases;
    part.stores = rank.stores;
    part.is_stopped = rank.is_stopped;
    part.threads = rank.threads > 0 && run.threads == 0 ? rank.threads : run.threads;
    RunSearch(search, part);
  };
  return PlayOnRanks(*launch, results, share, play);
}

}  // namespace rehearse
