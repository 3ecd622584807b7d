#include "scenarios/searching/best_scenario.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/searching/search.h"
#include "sim/base/json_document.h"
#include "sim/base/units.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kTokensOfStep = uint64_t{4} << 20;

// What readers look for first comes first.
Json Ordered(const nlohmann::json& scenario) {
  Json ordered;
  for (const char* key :
       {"name", "cluster", "placement", "model", "training", "software", "strategy", "pipeline"})
    if (scenario.contains(key)) ordered[key] = scenario[key];
  for (const auto& [key, value] : scenario.items())
    if (!ordered.contains(key)) ordered[key] = value;
  return ordered;
}

}  // namespace

std::string BestScenario(const BestScenarioRequest& request) {
  const std::unique_ptr<Cluster> cluster = ReadClusterArgument(request.cluster);
  const uint64_t ranks = cluster->device_count();
  const uint64_t batch = request.batch.value_or(
      ranks * std::max<uint64_t>(1, kTokensOfStep / request.sequence / ranks));
  const nlohmann::json scenario = {
      {"name", request.model + " on " + request.cluster},
      {"cluster", request.cluster},
      {"model", {{"preset", request.model}}},
      {"training", {{"batch", batch}, {"sequence", request.sequence}}}};
  const Search search = ReadSearch(JsonDocument::FromText(scenario.dump(), "rehearse init"));
  SearchRun run;
  run.observer = request.observer;
  run.is_stopped = request.is_stopped;
  const FoundPoints found = RunSearch(search, run);
  const FoundPoint& best = found.points.front();
  return fmt::format(
      "// The best that \"rehearse init\" found, of {:.0f} configurations of which {} were "
      "simulated:\n"
      "// a step of {}, {:.4g} {}/s, {} of each GPU's memory. Play it with\n"
      "//   rehearse run THIS_FILE\n"
      "// and try others with \"rehearse search\"; \"rehearse schema scenario\" lists every key.\n"
      "{}\n",
      search.space.Size(), found.simulated, Print(best.simulated->step),
      best.simulated->tokens_per_second, best.simulated->token_name, Print(best.simulated->memory),
      Ordered(ScenarioOf(search, best.point).value()).dump(2));
}

}  // namespace rehearse
