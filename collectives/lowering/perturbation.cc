#include "collectives/lowering/perturbation.h"

#include <algorithm>
#include <map>

#include "sim/base/noise.h"

namespace rehearse {
namespace {

// The factor of a trunk's capacity when each of its cables carries factor(cable) times its own.
template <typename Factor>
double ShareLeft(const Cluster& cluster, uint32_t trunk, const Factor& factor) {
  BytesPerSecond left;
  BytesPerSecond all;
  for (const uint32_t cable : cluster.CablesOf(trunk)) {
    const BytesPerSecond capacity = cluster.Link(cable).Capacity();
    left += factor(cable) * capacity;
    all += capacity;
  }
  return left / all;
}

}  // namespace

double ComputeFactor(const Perturbation& perturbation, uint32_t rank, uint32_t op) {
  double factor = perturbation.straggling.empty() ? 1 : perturbation.straggling[rank];
  if (perturbation.compute_jitter > 0) {
    const uint64_t position = uint64_t{rank} << 32 | op;
    factor *=
        1 + perturbation.compute_jitter * Noise(perturbation.seed, NoiseKind::kCompute, position);
  }
  return factor;
}

double LinkFactor(const Perturbation& perturbation, const Cluster& cluster, uint32_t link) {
  if (perturbation.link_jitter == 0) return 1;
  const auto own = [&](uint32_t cable) {
    return 1 + perturbation.link_jitter * Noise(perturbation.seed, NoiseKind::kLink, cable);
  };
  if (!cluster.IsTrunk(link)) return own(link);
  return ShareLeft(cluster, link, own);
}

Perturbation WithTrunkEvents(const Perturbation& perturbation, const Cluster& cluster) {
  Perturbation all = perturbation;
  std::map<uint32_t, std::vector<LinkEvent>> by_cable;
  for (const LinkEvent& event : perturbation.events) by_cable[event.link].push_back(event);
  for (uint32_t trunk = cluster.link_count(); trunk < cluster.way_count(); ++trunk) {
    if (by_cable.empty()) break;
    std::vector<LinkEvent> events;
    for (const uint32_t cable : cluster.CablesOf(trunk)) {
      const auto own = by_cable.find(cable);
      if (own != by_cable.end())
        events.insert(events.end(), own->second.begin(), own->second.end());
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const LinkEvent& a, const LinkEvent& b) { return a.at < b.at; });
    std::map<uint32_t, double> factors;  // of the cables that are not as they were
    for (size_t i = 0; i < events.size(); ++i) {
      factors[events[i].link] = events[i].factor;
      if (i + 1 < events.size() && events[i + 1].at == events[i].at) continue;
      const double left = ShareLeft(cluster, trunk, [&](uint32_t cable) {
        const auto factor = factors.find(cable);
        return factor == factors.end() ? 1 : factor->second;
      });
      all.events.push_back({events[i].at, trunk, left});
    }
  }
  return all;
}

std::vector<bool> FailingLinks(const Perturbation& perturbation, uint32_t link_count) {
  std::vector<bool> failing;
  for (const LinkEvent& event : perturbation.events) {
    if (event.factor != 0) continue;
    failing.resize(link_count);
    failing[event.link] = true;
  }
  return failing;
}

Alike AlikeUnder(const Perturbation& perturbation) {
  const bool differs_in_time = perturbation.compute_jitter > 0 || !perturbation.events.empty();
  const bool differs_in_place = perturbation.link_jitter > 0 || !perturbation.straggling.empty();
  return {.layers = !differs_in_time && !differs_in_place, .micro_batches = !differs_in_time};
}

}  // namespace rehearse
