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

// For each cable by which members leave their machines: their places, those with the shortest way
// to their own place elsewhere first.
std::vector<std::vector<uint32_t>> PlacesByCable(
    Router& router, const std::vector<uint32_t>& ranks,
    const std::vector<std::vector<uint32_t>>& machines) {
  std::vector<std::vector<uint32_t>> cables;
  for (size_t machine = 0; machine < machines.size(); ++machine) {
    const std::vector<uint32_t>& next = machines[(machine + 1) % machines.size()];
    std::map<uint32_t, std::vector<std::pair<size_t, uint32_t>>> members;
    for (uint32_t place = 0; place < machines[machine].size(); ++place) {
      const Route& route = router.Between(ranks[machines[machine][place]], ranks[next[place]]);
      members[CableOf(router.cluster(), route)].emplace_back(route.links.size(), place);
    }
    for (auto& [cable, on_it] : members) {
      std::sort(on_it.begin(), on_it.end());
      std::vector<uint32_t>& of_cable = cables.emplace_back();
      for (const auto& [length, place] : on_it) of_cable.push_back(place);
    }
  }
  return cables;
}

}  // namespace

std::vector<uint32_t> PlacesWithNics(Router& router, const std::vector<uint32_t>& ranks,
                                     const std::vector<std::vector<uint32_t>>& machines) {
  std::vector<uint32_t> places(machines.front().size());
  std::iota(places.begin(), places.end(), 0u);
  if (!router.HasMachinesApart() || machines.size() < 2) return places;
  const std::vector<std::vector<uint32_t>> cables = PlacesByCable(router, ranks, machines);
  size_t most = 0;
  size_t fewest = places.size();
  for (const std::vector<uint32_t>& of_cable : cables) {
    most = std::max(most, of_cable.size());
    fewest = std::min(fewest, of_cable.size());
  }
  // Those that stay if no cable may have more than a number of them. Machines may have lost NICs at
  // different places, so that fewer on a cable can cost more places than it gains.
  const auto with_at_most = [&](size_t number) {
    std::vector<bool> is_out(places.size());
    for (const std::vector<uint32_t>& of_cable : cables)
      for (size_t i = 0, stay = 0; i < of_cable.size(); ++i)
        if (!is_out[of_cable[i]] && ++stay > number) is_out[of_cable[i]] = true;
    std::vector<uint32_t> left;
    for (const uint32_t place : places)
      if (!is_out[place]) left.push_back(place);
    return left;
  };
  std::vector<uint32_t> best = places;
  size_t on_a_cable = most;
  for (size_t number = fewest; number < most; ++number) {
    std::vector<uint32_t> left = with_at_most(number);
    if (left.size() * on_a_cable <= best.size() * number) continue;
    best = std::move(left);
    on_a_cable = number;
  }
  return best;
}

std::vector<uint32_t> WithNeighboursOpposite(Router& router, const std::vector<uint32_t>& ranks,
                                             const std::vector<std::vector<uint32_t>>& machines) {
  const size_t size = machines.front().size();
  std::vector<uint32_t> order;
  std::vector<uint32_t> opposite;
  std::vector<bool> is_placed(size);
  const auto place = [&](uint32_t a, uint32_t b) {
    if (a == b || is_placed[a] || is_placed[b]) return;
    is_placed[a] = is_placed[b] = true;
    order.push_back(std::min(a, b));
    opposite.push_back(std::max(a, b));
  };
  for (const std::vector<uint32_t>& of_cable : PlacesByCable(router, ranks, machines))
    if (of_cable.size() == 2) place(of_cable[0], of_cable[1]);
  for (uint32_t a = 0; a < size; ++a)
    for (uint32_t b = a + 1; b < size; ++b) place(a, b);
  order.insert(order.end(), opposite.begin(), opposite.end());
  return order;
}

}  // namespace rehearse
