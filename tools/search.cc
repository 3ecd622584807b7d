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
#include "tools/search_clusters.h"
#include "tools/terminal.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMostShown = 1'000'000;

// Options that stand for a key of "search".
struct KeyOption {
  const char* option;
  const char* key;
};
constexpr KeyOption kKeyOptions[] = {{"objective", "objective"},
                                     {"method", "method"},
                                     {"decide", "decide"},
                                     {"formula", "formula"},
                                     {"evaluations", "evaluations"},
                                     {"seed", "seed"},
                                     {"per", "per"}};

// A name becomes JSON text; two names separated by a comma become a list.
std::string ValueOfOption(const std::string& option, const std::string& text) {
  if (option == "evaluations" || option == "seed") return text;
  const std::vector<std::string> parts = SplitAtCommas(text);
  return parts.size() == 1 ? nlohmann::json(text).dump() : nlohmann::json(parts).dump();
}

void SetKeys(const po::variables_map& values, JsonDocument* document) {
  if (values.count("clusters") > 0) SetClusters(values["clusters"].as<std::string>(), document);
  for (const KeyOption& one : kKeyOptions) {
    if (values.count(one.option) == 0) continue;
    document->Set(fmt::format("search.{}={}", one.key,
                              ValueOfOption(one.option, values[one.option].as<std::string>())),
                  {std::string("--") + one.option, 0, ""});
  }
  if (values.count("seconds") > 0)
    document->Set(fmt::format("search.seconds={}", values["seconds"].as<Seconds>().value()),
                  {"--seconds", 0, ""});
}

// Paths in the scenario are relative to its folder.
nlohmann::json Movable(nlohmann::json scenario, const std::string& from) {
  constexpr const char* kKeys[] = {"cluster", "calibration", "device_points"};
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
      "section says (`rehearse schema scenario`). A formula, from the strategy's paper or closed\n"
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
  syntax.takes["objective"] = TakenName({std::begin(kObjectiveNames), std::end(kObjectiveNames)});
  syntax.takes["objective"].only_names = false;
  syntax.takes["per"] = TakenName({"cluster"});
  syntax.takes["per"].only_names = false;
  syntax.takes["clusters"] = {.kind = Taken::Kind::kCluster};
  syntax.takes["svg"] = TakenOutput({".svg"});
  auto add = syntax.options.add_options();
  add("objective", po::value<std::string>()->value_name("NAME[,NAME]"),
      "what to optimise: time, tokens, gpu-hours, money (search.price), energy, memory or a number "
      "of result.json; with two, the Pareto front");
  add("clusters", po::value<std::string>()->value_name("CLUSTER[,CLUSTER]"),
      "try these clusters (presets or files), and show the best on each");
  add("per", po::value<std::string>()->value_name("PATH"),
      "show the best for each value of an axis, such as cluster");
  add("method",
      po::value<std::string>()->value_name("exhaustive|random|descent|metropolis|annealing"),
      "how the space is searched (exhaustive)");
  add("decide", po::value<std::string>()->value_name("both|simulation|formula"),
      "the formula chooses what is simulated (both), everything is simulated, or nothing is");
  add("formula",
      po::value<std::string>()->value_name("auto|axonn|axonn-agnostic|atp|autoddl|closed-forms"),
      "a paper's model, or the simulator's closed forms without contention");
  add("evaluations", po::value<std::string>()->value_name("N"),
      "look at no more than N points (2000; not with exhaustive)");
  add("seconds", Wait("TIME", nullptr), "begin no point after this time");
  add("seed", po::value<std::string>()->value_name("N"),
      "seed of the random numbers (1; not with exhaustive)");
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
  if (values.count("set") > 0)
    for (const std::string& change : values["set"].as<std::vector<std::string>>())
      document.Set(change);
  SetKeys(values, &document);
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
