#include "tools/search_keys.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/searching/objective.h"
#include "sim/base/moved_paths.h"
#include "tools/number_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

// "dgx-h100:nodes=8,nics=4,dgx-b200" names two: what has a '=' but no ':' belongs to the one
// before.
std::vector<std::string> ClustersIn(const std::string& text) {
  std::vector<std::string> clusters;
  for (const std::string& part : SplitAtCommas(text)) {
    const bool goes_on = part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (goes_on && !clusters.empty())
      clusters.back() += "," + part;
    else
      clusters.push_back(part);
  }
  return clusters;
}

constexpr const char* kClusterKeys[] = {"cluster"};

// An axis of clusters in place of those that the search may have, and the best of each.
void SetClusters(const std::string& text, JsonDocument* document) {
  const Place place{"--clusters", 0, ""};
  nlohmann::json axes = nlohmann::json::array();
  nlohmann::json choices = nlohmann::json::array();
  for (const std::string& cluster : ClustersIn(text))
    choices.push_back({{"name", "cluster " + cluster}, {"set", {{"cluster", cluster}}}});
  // Files are those of the working directory, wherever the scenario lies, or goes with --out.
  for (nlohmann::json& choice : choices) MakeAbsolute(&choice["set"], kClusterKeys, "");
  axes.push_back({{"choices", choices}});
  const nlohmann::json& scenario = document->value();
  if (scenario.contains("search") && scenario["search"].is_object() &&
      scenario["search"].contains("axes") && scenario["search"]["axes"].is_array())
    for (const nlohmann::json& axis : scenario["search"]["axes"])
      if (!axis.is_object() || axis.value("path", nlohmann::json()) != "cluster")
        axes.push_back(axis);
  const bool has_cluster = scenario.contains("cluster");
  document->Set("search.axes=" + axes.dump(), place);
  if (!has_cluster) document->Set("cluster=" + choices.front()["set"]["cluster"].dump(), place);
  document->Set("search.per=cluster", place);
}

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
                                     {"per", "per"},
                                     {"gpus", "gpus"}};

// A name becomes JSON text; two names separated by a comma become a list.
std::string ValueOfOption(const std::string& option, const std::string& text) {
  if (option == "evaluations" || option == "seed" || option == "gpus") return text;
  const std::vector<std::string> parts = SplitAtCommas(text);
  return parts.size() == 1 ? nlohmann::json(text).dump() : nlohmann::json(parts).dump();
}

}  // namespace

void AddSearchKeys(CommandSyntax* syntax) {
  syntax->takes["objective"] = TakenName({std::begin(kObjectiveNames), std::end(kObjectiveNames)});
  syntax->takes["objective"].only_names = false;
  syntax->takes["per"] = TakenName({"cluster"});
  syntax->takes["per"].only_names = false;
  syntax->takes["clusters"] = {.kind = Taken::Kind::kCluster};
  auto add = syntax->options.add_options();
  add("objective", po::value<std::string>()->value_name("NAME[,NAME]"),
      "what to optimise: time, tokens, gpu-hours, money (search.price), energy, memory, run-time, "
      "run-money, run-energy (what all of a \"run\" takes) or a number of result.json; with two, "
      "the Pareto front");
  add("clusters", po::value<std::string>()->value_name("CLUSTER[,CLUSTER]"),
      "try these clusters (presets or files), and show the best on each");
  add("gpus", po::value<std::string>()->value_name("N"),
      "use at most N GPUs of each cluster, equally many of each machine");
  add("per", po::value<std::string>()->value_name("PATH"),
      "show the best for each value of an axis, such as cluster");
  add("method",
      po::value<std::string>()->value_name("exhaustive|random|descent|metropolis|annealing"),
      "how the space is searched (exhaustive)");
  add("decide", po::value<std::string>()->value_name("both|simulation|formula"),
      "the formula chooses what is simulated (both), everything is simulated, or nothing is");
  add("formula",
      po::value<std::string>()->value_name(
          "auto|axonn|axonn-agnostic|atp|autoddl|closed-forms|composed"),
      "a paper's model, or the simulator's closed forms without contention, as they are or "
      "composed "
      "of a few layers' (large spaces)");
  add("evaluations", po::value<std::string>()->value_name("N"),
      "look at no more than N points (2000; not with exhaustive)");
  add("seconds", Wait("TIME", nullptr), "begin no point after this time");
  add("seed", po::value<std::string>()->value_name("N"),
      "seed of the random numbers (1; not with exhaustive)");
}

bool HasSearchKeys(const po::variables_map& values) {
  return values.count("clusters") > 0 || values.count("seconds") > 0 ||
         std::any_of(std::begin(kKeyOptions), std::end(kKeyOptions),
                     [&](const KeyOption& one) { return values.count(one.option) > 0; });
}

void SetSearchKeys(const po::variables_map& values, JsonDocument* document) {
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

}  // namespace rehearse
