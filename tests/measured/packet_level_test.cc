// Hashing against spraying, beside the published results of a packet-level simulation.
//
// Li, Lin, Jiang, Wang: "SOPA: Source Routing Based Packet-Level Multi-Path Routing in Data Center
// Networks" (ZTE Communications 16(2), 2018), abstract: with NS-3, under a permutation, packets
// dealt in turn over all equal paths of a fat tree reach 77.74 % more throughput than ECMP by
// flows, 29.87 % more than random packets, whose reordering TCP takes for loss. Every server sends
// one flow to another and receives one; links are equal. Ours has neither TCP nor queues: sprayed
// flows reach the full rate of their links, and the ratio is an upper bound.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/max_min.h"
#include "tests/topology/fabrics/small_fabrics.h"

namespace rehearse {
namespace packet_level_test {

// The mean rate of the flows of a random permutation, as a share of a server's link.
double MeanRate(uint32_t radix, RouteChoice choice, uint64_t seed) {
  ClosSpec spec = ClosOf(radix, 3);
  NodeSpec node;
  node.cable = Cable();
  const uint32_t servers = radix * radix * radix / 4;
  const auto cluster = BuildMachine({"fat tree", node, servers, spec, {}}, FindDevice("a100-40g"));
  Router router(*cluster, {choice, std::nullopt, seed});
  std::vector<uint32_t> to(servers);
  std::iota(to.begin(), to.end(), 0u);
  std::mt19937_64 random(seed);
  for (uint32_t i = servers - 1; i > 0; --i) std::swap(to[i], to[random() % i]);  // one cycle
  std::vector<double> capacities;
  for (uint32_t i = 0; i < cluster->way_count(); ++i)
    capacities.push_back(cluster->Link(i).Capacity().value());
  std::vector<std::vector<LinkUse>> uses(servers);
  for (uint32_t from = 0; from < servers; ++from) {
    for (const uint32_t link : router.Between(from, to[from]).links)
      uses[from].push_back({LinkId(link), 1});
    std::sort(uses[from].begin(), uses[from].end(),
              [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  }
  MaxMinProblem problem;
  problem.capacities = capacities;
  for (const auto& own : uses) problem.flows.emplace_back(own);
  const std::vector<double> rates = SolveMaxMin(problem);
  return std::accumulate(rates.begin(), rates.end(), 0.) / servers / 10e9;
}

TEST(PacketLevelTest, SprayingBeatsHashingByMoreThanPacketsDoInNs3) {
  constexpr double kPublished = 1.7774;
  for (const uint32_t radix : {8u, 16u, 24u}) {  // the abstract does not say which
    double sprayed = 0;
    double hashed = 0;
    constexpr int kSeeds = 4;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      sprayed += MeanRate(radix, RouteChoice::kSpray, seed) / kSeeds;
      hashed += MeanRate(radix, RouteChoice::kEcmp, seed) / kSeeds;
    }
    // A tree without oversubscription carries every permutation.
    EXPECT_NEAR(sprayed, 1, 1e-9);
    const double ratio = sprayed / hashed;
    EXPECT_GT(ratio, kPublished) << "radix " << radix;
    std::printf(
        "radix %u: hashed flows reach %.1f %% of their links, sprayed ones %.2f times that "
        "(NS-3: %.2f)\n",
        radix, 100 * hashed, ratio, kPublished);
  }
}

}  // namespace packet_level_test
}  // namespace rehearse
