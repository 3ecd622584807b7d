// Trunks, and the routes that spray, flowlet and ecmp take.
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/fabrics/small_fabrics.h"
#include "topology/fabrics/routing.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace spray_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr BytesPerSecond GigabytesEach(double value) { return BytesPerSecond(value * 1e9); }

FabricRouting Choose(RouteChoice choice, std::optional<uint32_t> queue_pairs = std::nullopt) {
  return {choice, queue_pairs, std::nullopt};
}

TEST(SprayTest, TheCablesOfALeafAreOneTrunkEachWay) {
  // Radix 8: leaves of 4 down and 4 up, cables of 10 GB/s: 40 GB/s out of a leaf and into it.
  const auto cluster = Single(ClosOf(8), 16);
  Router router(*cluster);
  const Route& route = router.Between(0, 4);
  EXPECT_THAT(Names(*cluster, route), ElementsAre("node0/gpu0->leaf0", "leaf0->spine*",
                                                  "spine*->leaf1", "leaf1->node4/gpu0"));
  EXPECT_EQ(cluster->CablesOf(route.links[1]).size(), 4u);
  EXPECT_DOUBLE_EQ(cluster->Link(route.links[1]).Capacity().value(), 40e9);
  EXPECT_EQ(route.bandwidth, GigabytesEach(40));
  EXPECT_EQ(router.Between(3, 7).links[1], route.links[1]);
  EXPECT_THAT(Names(*cluster, router.Between(0, 3)),
              ElementsAre("node0/gpu0->leaf0", "leaf0->node3/gpu0"));
}

TEST(SprayTest, EveryCableOfAFabricIsInOneTrunk) {
  for (const uint32_t levels : {2u, 3u}) {
    const auto cluster = Single(ClosOf(4, levels), 8);
    std::set<uint32_t> seen;
    for (uint32_t trunk = cluster->link_count(); trunk < cluster->way_count(); ++trunk)
      for (const uint32_t cable : cluster->CablesOf(trunk)) {
        EXPECT_TRUE(seen.insert(cable).second);
        EXPECT_THAT(cluster->LinkName(cable), HasSubstr("->"));
      }
    // All links but those of the 8 machines.
    EXPECT_EQ(seen.size(), cluster->link_count() - 16);
  }
}

TEST(SprayTest, ThreeLevelsCrossFourTrunks) {
  // Radix 4: leaves of 2 machines, pods of 2 leaves with 2 switches, 4 cores. A leaf has 2 cables
  // up, a pod 4.
  const auto cluster = Single(ClosOf(4), 16);
  Router router(*cluster);
  const Route& route = router.Between(0, 15);
  EXPECT_THAT(Names(*cluster, route),
              ElementsAre("node0/gpu0->leaf0", "leaf0->pod0/spine*", "pod0/spine*->core*",
                          "core*->pod3/spine*", "pod3/spine*->leaf7", "leaf7->node15/gpu0"));
  EXPECT_EQ(cluster->CablesOf(route.links[1]).size(), 2u);
  EXPECT_EQ(cluster->CablesOf(route.links[2]).size(), 4u);
}

TEST(SprayTest, ATrunkIsAsWideAsTheCablesThatAreLeft) {
  const auto whole = Single(ClosOf(8), 16);
  Router router(*whole);
  const uint32_t trunk = router.Between(0, 4).links[1];
  Figures figures = whole->figures();
  const uint32_t slow = whole->CablesOf(trunk)[2];
  figures.ChangeLinks([&](uint32_t link, LinkFigures& one) {
    if (link == slow) one.bandwidth = GigabytesEach(4);
    if (link == slow) one.latency = Seconds(3e-6);
  });
  const Cluster slower = whole->With(figures);
  // 3 of 10 GB/s and one of 4; packets of a message take all of them, so the longest counts.
  EXPECT_DOUBLE_EQ(slower.Link(trunk).Capacity().value(), 34e9);
  EXPECT_EQ(slower.Link(trunk).latency, Seconds(3e-6));
  EXPECT_DOUBLE_EQ(whole->Link(trunk).Capacity().value(), 40e9);
}

TEST(SprayTest, DragonfliesSprayOverTheBundlesBetweenTwoGroups) {
  // 4 groups, 2 bundles of 10 GB/s between every two; 3 local cables of 40 out of a switch.
  const auto cluster = Single(DragonflyOf(6), 32);
  Router router(*cluster);
  const Route& route = router.Between(2, 9);  // switch 1 of group 0 to switch 0 of group 1
  ASSERT_EQ(route.links.size(), 5u);
  EXPECT_EQ(cluster->LinkName(route.links[1]), "group0/switch1->group0/switch*");
  EXPECT_EQ(cluster->LinkName(route.links[2]), "group0/switch*->group1/switch*");
  EXPECT_EQ(cluster->LinkName(route.links[3]), "group1/switch*->group1/switch0");
  EXPECT_DOUBLE_EQ(cluster->Link(route.links[1]).Capacity().value(), 120e9);
  EXPECT_DOUBLE_EQ(cluster->Link(route.links[2]).Capacity().value(), 20e9);
  EXPECT_EQ(router.Between(0, 7).links.size(), 3u);  // inside a group: their own cable
}

// 32 pairs from one leaf to another and 32 cables. A hash uses 1 - (1 - 1/32)^32 = 64 % of them;
// where every other pair then moves to the least used cable, more are in use, but not all.
TEST(FlowletTest, EveryOtherPairMovesToTheLeastUsedCable) {
  const auto cluster = Single(ClosOf(64, 2), 64);
  constexpr uint64_t kSeeds = 50;
  std::map<RouteChoice, double> used;
  for (const RouteChoice choice : {RouteChoice::kEcmp, RouteChoice::kFlowlet}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      FabricRouting routing = Choose(choice);
      routing.seed = seed;
      Router router(*cluster, routing);
      EXPECT_TRUE(router.IsHashed());
      std::map<std::string, int> ups;
      for (uint32_t i = 0; i < 32; ++i) ++ups[Names(*cluster, router.Between(i, 32 + i)).at(1)];
      used[choice] += static_cast<double>(ups.size()) / 32 / kSeeds;
    }
  }
  EXPECT_NEAR(used[RouteChoice::kEcmp], 0.64, 0.03);
  EXPECT_GT(used[RouteChoice::kFlowlet], 0.72);
  EXPECT_LT(used[RouteChoice::kFlowlet], 0.95);
}

TEST(EcmpTest, EveryQueuePairHasAWayOfItsOwn) {
  const auto cluster = Single(ClosOf(64, 2), 64);
  Router router(*cluster, Choose(RouteChoice::kEcmp, 8));
  EXPECT_EQ(router.ways(), 8u);
  const Route& route = router.Between(0, 32);
  ASSERT_EQ(route.others.size(), 7u);
  std::map<uint32_t, uint32_t> parts;
  ForEachCrossing(route, router.ways(), [&](uint32_t link, uint32_t n) { parts[link] += n; });
  // All eight ways leave the one machine and enter the other by one link; in between they are
  // spread.
  EXPECT_EQ(parts[route.links.front()], 8u);
  EXPECT_EQ(parts[route.links.back()], 8u);
  EXPECT_GE(parts.size(), 2u + 2 * 4);
  uint32_t most = 0;
  for (const auto& [link, n] : parts)
    if (link != route.links.front() && link != route.links.back()) most = std::max(most, n);
  // Alone, the part on the fullest cable of 10 GB/s sets the pace of all; the machine's cable has
  // 100.
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), std::min(100e9, 10e9 * 8 / most));
  // Routes of a pair on one leaf are all the same.
  EXPECT_DOUBLE_EQ(router.Between(0, 1).bandwidth.value(), 100e9);
}

// 2 GPUs on NVSwitch, or not joined but by their host, with a NIC each; rails of leaves for 4.
std::unique_ptr<Cluster> OnRails(bool has_nvlink) {
  Host host;
  host.switches = 2;
  host.nics = 2;
  host.device = host.root_port = host.nic = Cable(100);
  NodeSpec node;
  node.devices = 2;
  if (has_nvlink)
    node.nvswitch = MakeLink(LinkKind::kNvLink, GigabytesEach(300), 1, Seconds(0.5e-6));
  node.host = host;
  node.cable = Cable(10);
  return BuildMachine({"rails", node, 8, ClosOf(8, 2, 1, true), {}}, FindDevice("h100"));
}

TEST(RailTest, WhatIsForTheOtherRailGoesOverNvLinkFirst) {
  // GPU 1 of machine 0 to GPU 0 of machine 1: over NVLink to GPU 0, whose NIC is on the receiver's
  // leaf, instead of through a spine from one rail to the other.
  const auto cluster = OnRails(true);
  Router router(*cluster);
  const Route& direct = router.Between(1, 2);
  const Route& along = router.AlongRail(1, 2);
  EXPECT_THAT(Names(*cluster, direct), ::testing::Contains("rail1/leaf0->spine*"));
  EXPECT_THAT(
      Names(*cluster, along),
      ElementsAre("node0/gpu1->node0/nvswitch", "node0/nvswitch->node0/gpu0",
                  "node0/gpu0->node0/pcie0", "node0/pcie0->node0/nic0", "node0/nic0->rail0/leaf0",
                  "rail0/leaf0->node1/nic0", "node1/nic0->node1/pcie0", "node1/pcie0->node1/gpu0"));
  Seconds latency;
  for (const uint32_t link : along.links) latency += cluster->Link(link).latency;
  EXPECT_DOUBLE_EQ(along.latency.value(), latency.value());
  EXPECT_EQ(along.bandwidth, direct.bandwidth);  // the NICs bind, not NVLink
  EXPECT_TRUE(along.crosses_nodes);
  // Routes on one rail, and inside a machine, do not change.
  EXPECT_EQ(&router.AlongRail(0, 2), &router.Between(0, 2));
  EXPECT_EQ(&router.AlongRail(0, 1), &router.Between(0, 1));
}

// NCCL_CROSS_NIC=1: rings may change rails. Messages from rank to rank go as before.
TEST(RailTest, RingsThatMayChangeNicsGoFromRailToRail) {
  const auto cluster = OnRails(true);
  FabricRouting routing;
  routing.cross_nic = true;
  Router router(*cluster, routing);
  Router usual(*cluster);
  EXPECT_EQ(&router.AlongRail(1, 2), &router.Between(1, 2));
  EXPECT_EQ(router.Between(1, 2).links, usual.Between(1, 2).links);
  EXPECT_NE(router.AlongRail(1, 2).links, usual.AlongRail(1, 2).links);
}

TEST(RailTest, WithoutNvLinkItGoesFromRailToRail) {
  const auto cluster = OnRails(false);
  Router router(*cluster);
  EXPECT_EQ(&router.AlongRail(1, 2), &router.Between(1, 2));
}

TEST(RoutingTest, AFabricSaysWhatItTakes) {
  const auto clos = Single(ClosOf(8), 16);
  const auto dragonfly = Single(DragonflyOf(6), 32);
  const auto torus = Single(TorusSpec{{{4, true, Cable()}}}, 4);
  const auto error = [](const Cluster& cluster, const FabricRouting& routing) {
    return ErrorOf([&] { Router router(cluster, routing); });
  };
  EXPECT_THAT(error(*clos, Choose(RouteChoice::kValiant)),
              AllOf(HasSubstr("a fat tree"), HasSubstr("spray, flowlet, ecmp")));
  EXPECT_THAT(error(*dragonfly, Choose(RouteChoice::kEcmp)),
              AllOf(HasSubstr("a dragonfly"), HasSubstr("spray, minimal, valiant")));
  EXPECT_THAT(error(*torus, Choose(RouteChoice::kSpray)),
              AllOf(HasSubstr("a torus"), HasSubstr("it takes dimension-order")));
  EXPECT_THAT(error(*clos, Choose(RouteChoice::kSpray, 4)), HasSubstr("hashed by routing"));
  EXPECT_EQ(error(*clos, Choose(RouteChoice::kEcmp, 4)), "");
}

}  // namespace spray_test
}  // namespace rehearse
