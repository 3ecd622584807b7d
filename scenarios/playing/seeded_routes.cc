#include "scenarios/playing/seeded_routes.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "sim/base/threads.h"
#include "topology/fabrics/router.h"

namespace rehearse {

namespace {

// What its network does, where packets may come in any order.
NetworkOptions SprayedNetwork(const Scenario& scenario) {
  const PacketOptions own = PacketSettingsOf(scenario).options;
  NetworkOptions network = scenario.lowering.network;
  network.link_control = own.link_control;
  network.rate_control = own.rate_control;
  network.recovery = Recovery::kSelective;
  return network;
}

}  // namespace

std::optional<RouteSpread> SettleRoutes(const std::vector<Job>& jobs, Scenario* scenario,
                                        unsigned threads, ProgressObserver& observer) {
  const Router router(*scenario->cluster, scenario->routing);
  if (!router.IsHashed()) return std::nullopt;
  // Sprayed, and the seeds. The caller plays a given seed anyway.
  std::vector<FabricRouting> routings;
  const uint64_t count = scenario->routing.seed ? 0 : kRoutingSeeds;
  for (uint64_t seed = 0; seed < count; ++seed) {
    routings.push_back(scenario->routing);
    routings.back().seed = seed;
  }
  routings.push_back({RouteChoice::kSpray, std::nullopt, std::nullopt});

  std::vector<Seconds> steps(routings.size());
  std::mutex mutex;  // for the observer
  size_t done = 0;
  std::atomic<bool> has_failed = false;
  observer.Begin("trying seeds of the routes", "seeds", static_cast<double>(routings.size()));
  InParallel(routings.size(), threads, [&](size_t i) {
    if (has_failed) return;
    try {
      Scenario other = *scenario;
      other.routing = routings[i];
      if (other.lowering.fidelity == Fidelity::kPacket && i + 1 == routings.size())
        other.lowering.network = SprayedNetwork(*scenario);
      const PlayedScenario played = PlayJobs(other, jobs, {}, nullptr, CopiedSpans::kLeftOut);
      steps[i] = StepOf(played.schedule(), played.simulation.timeline);
      const std::lock_guard lock(mutex);
      observer.Done(static_cast<double>(++done));
    } catch (...) {  // so that the others need not begin
      has_failed = true;
      throw;
    }
  });

  RouteSpread spread;
  spread.routing = ToText(*router.rule());
  spread.sprayed = steps.back();
  for (uint64_t seed = 0; seed < count; ++seed) spread.steps.push_back({seed, steps[seed]});
  std::stable_sort(spread.steps.begin(), spread.steps.end(),
                   [](const SeededStep& a, const SeededStep& b) { return a.step < b.step; });
  if (count > 0) scenario->routing.seed = spread.steps[(count - 1) / 2].seed;
  spread.seed = *scenario->routing.seed;
  return spread;
}

void DescribeRoutes(const Cluster& cluster, const PlayedScenario& played, RouteSpread* spread) {
  if (spread->steps.empty())
    spread->steps.push_back({spread->seed, StepOf(played.schedule(), played.simulation.timeline)});
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

Alike AlikeUnder(const Cluster& cluster, const FabricRouting& routing) {
  return {.layers = !Router(cluster, routing).IsHashed()};
}

}  // namespace rehearse
