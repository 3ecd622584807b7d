#include "collectives/algorithms/crowded_places.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace rehearse {
namespace {

// The first cable of the way; the way's own first link if it crosses none.
uint32_t CableOf(const Cluster& cluster, const Route& route) {
  const auto cable = std::find_if(route.links.begin(), route.links.end(), [&](uint32_t link) {
    return cluster.KindOf(link) == LinkKind::kNetwork;
  });
  return cable == route.links.end() ? route.links.front() : *cable;
}

}  // namespace

std::vector<uint32_t> PlacesWithNics(Router& router, const std::vector<uint32_t>& ranks,
                                     const std::vector<std::vector<uint32_t>>& machines) {
  std::vector<uint32_t> places(machines.front().size());
  std::iota(places.begin(), places.end(), 0u);
  if (!router.HasMachinesApart() || machines.size() < 2) return places;
  std::vector<bool> is_crowded(places.size());
  for (size_t machine = 0; machine < machines.size(); ++machine) {
    const std::vector<uint32_t>& next = machines[(machine + 1) % machines.size()];
    // By cable: its members, those with the shortest way to their own place elsewhere first.
    std::map<uint32_t, std::vector<std::pair<size_t, uint32_t>>> members;
    for (const uint32_t place : places) {
      const Route& route = router.Between(ranks[machines[machine][place]], ranks[next[place]]);
      members[CableOf(router.cluster(), route)].emplace_back(route.links.size(), place);
    }
    size_t least = places.size();
    for (const auto& [cable, on_it] : members) least = std::min(least, on_it.size());
    for (auto& [cable, on_it] : members) {
      std::sort(on_it.begin(), on_it.end());
      for (size_t i = least; i < on_it.size(); ++i) is_crowded[on_it[i].second] = true;
    }
  }
  std::vector<uint32_t> left;
  for (const uint32_t place : places)
    if (!is_crowded[place]) left.push_back(place);
  return left.empty() ? places : left;
}

}  // namespace rehearse
