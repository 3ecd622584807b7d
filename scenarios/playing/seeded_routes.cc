#include "scenarios/playing/seeded_routes.h"

#include <algorithm>

#include "topology/fabrics/router.h"

namespace rehearse {

std::optional<RouteSpread> SettleRoutes(const std::vector<Job>& jobs, Scenario* scenario,
                                        ProgressObserver& observer) {
  const Router router(*scenario->cluster, scenario->routing);
  if (!router.IsHashed()) return std::nullopt;
  const auto step = [&](const FabricRouting& routing) {
    Scenario other = *scenario;
    other.routing = routing;
    return ToSeconds(PlayJobs(other, jobs).simulation.timeline.step);
  };
  RouteSpread spread;
  spread.routing = ToText(*router.rule());
  const uint64_t first = scenario->routing.seed.value_or(0);
  const uint64_t count = scenario->routing.seed ? 1 : kRoutingSeeds;
  observer.Begin("trying seeds of the routes", "seeds", static_cast<double>(count) + 1);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    FabricRouting routing = scenario->routing;
    routing.seed = seed;
    spread.steps.push_back({seed, step(routing)});
    observer.Done(static_cast<double>(seed - first) + 1);
  }
  spread.sprayed = step({RouteChoice::kSpray, std::nullopt, std::nullopt});
  std::stable_sort(spread.steps.begin(), spread.steps.end(),
                   [](const SeededStep& a, const SeededStep& b) { return a.step < b.step; });
  spread.seed = spread.steps[(count - 1) / 2].seed;
  scenario->routing.seed = spread.seed;
  return spread;
}

void FindWorstCable(const Cluster& cluster, const PlayedScenario& played, RouteSpread* spread) {
  const auto carried = [&](uint32_t link) {
    return played.simulation.timeline.links[played.lowered.links[link]].bytes;
  };
  Seconds longest;
  for (uint32_t trunk = cluster.link_count(); trunk < cluster.way_count(); ++trunk) {
    const auto cables = cluster.CablesOf(trunk);
    Bytes all;
    for (const uint32_t cable : cables) all += carried(cable);
    if (all == Bytes(0)) continue;
    for (const uint32_t cable : cables) {
      const Seconds time = carried(cable) / cluster.Link(cable).Capacity();
      if (time <= longest) continue;
      longest = time;
      spread->worst_link = cluster.LinkName(cable);
      spread->worst_share = carried(cable) / all * static_cast<double>(cables.size());
    }
  }
}

}  // namespace rehearse
