// Machines with more ways out than devices, or with unequal ones: NICs of several ports, more NICs
// than devices, NICs of two speeds; and trees that are joined only by machines: planes and separate
// rails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/topology/fabrics/small_fabrics.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/structure.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace ports_test {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 2 devices on a switch of NVLinks, with a PCIe switch and `nics` NICs of `ports` ports of 10 GB/s
// each; PCIe never binds.
NodeSpec Box(uint32_t nics, uint32_t ports) {
  Host host;
  host.switches = 2;
  host.nics = nics;
  host.nic_ports = ports;
  host.device = host.root_port = host.nic = Cable(200);
  NodeSpec node;
  node.devices = 2;
  node.nvswitch = MakeLink(LinkKind::kNvLink, BytesPerSecond(300e9), 1, Seconds(0.5e-6));
  node.host = host;
  node.cable = Cable(10);
  return node;
}

std::unique_ptr<Cluster> Machines(const NodeSpec& node, const FabricSpec& fabric,
                                  uint32_t nodes = 16) {
  return BuildMachine({"ports", node, nodes, fabric, {}}, FindDevice("h100"));
}

ClosSpec Planes(uint32_t planes) {
  ClosSpec spec = ClosOf(8, 2);
  spec.planes = planes;
  return spec;
}

ClosSpec RailOnly() {
  ClosSpec spec = ClosOf(8, 2);
  spec.rail_only = true;
  return spec;
}

// NICs of two ports, and two NICs for each device, over two levels and over three.
TEST(PortsTest, AllHashedPairsCrossWhatEachOfThemCrosses) {
  for (const auto& [nics, ports] : {std::pair(2u, 2u), std::pair(4u, 1u)}) {
    for (const uint32_t levels : {2u, 3u}) {
      SCOPED_TRACE(fmt::format("{} NICs of {} ports, {} levels", nics, ports, levels));
      ClosSpec spec = ClosOf(8, levels);
      spec.routing = {RouteChoice::kEcmp, 3};
      const auto cluster = Machines(Box(nics, ports), spec, levels == 2 ? 8 : 20);
      Router router(*cluster);
      EXPECT_EQ(router.ways(), 6u);
      std::vector<uint32_t> ranks = {0, 1};  // one machine whole, one device each of the others
      for (uint32_t rank = 2; rank < cluster->device_count(); rank += 3) ranks.push_back(rank);
      std::vector<uint32_t> expected(cluster->way_count());
      Seconds longest;
      for (const uint32_t from : ranks) {
        for (const uint32_t to : ranks) {
          if (from == to) continue;
          const Route& route = router.Between(from, to);
          longest = std::max(longest, route.latency);
          ForEachCrossing(route, router.ways(),
                          [&](uint32_t link, uint32_t parts) { expected[link] += parts; });
        }
      }
      std::vector<uint32_t> found(cluster->way_count());
      const auto latency =
          router.VisitAllPairs(ranks, [&](uint32_t link, uint32_t times) { found[link] += times; });
      ASSERT_TRUE(latency.has_value());
      EXPECT_EQ(found, expected);
      EXPECT_NEAR(latency->value(), longest.value(), 1e-9 * longest.value());
    }
  }
}

TEST(PortsTest, APartLeavesByEachPortOfTheNicAndStaysOnItsPlane) {
  const auto cluster = Machines(Box(2, 2), Planes(2));
  Router router(*cluster);
  EXPECT_EQ(router.ways(), 2u);
  const Route& route = router.Between(0, 30);
  EXPECT_THAT(Names(*cluster, route),
              ElementsAre("node0/gpu0->node0/pcie0", "node0/pcie0->node0/nic0",
                          "node0/nic0->plane0/leaf0", "plane0/leaf0->plane0/spine*",
                          "plane0/spine*->plane0/leaf7", "plane0/leaf7->node15/nic0",
                          "node15/nic0->node15/pcie0", "node15/pcie0->node15/gpu0"));
  ASSERT_EQ(route.others.size(), 1u);
  Route other = route;
  other.links = route.others[0];
  EXPECT_THAT(Names(*cluster, other), Contains("node0/nic0->plane1/leaf0"));
  EXPECT_THAT(Names(*cluster, other), Each(Not(HasSubstr("plane0"))));
  // Both ports at once.
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 20e9);
  // What stays in the machine is one part.
  EXPECT_TRUE(router.Between(0, 1).others.empty());
}

TEST(PortsTest, BothPortsMayBeOnOneTree) {
  const auto cluster = Machines(Box(2, 2), ClosOf(8, 3));
  Router router(*cluster);
  EXPECT_EQ(router.ways(), 2u);
  EXPECT_DOUBLE_EQ(router.Between(0, 30).bandwidth.value(), 20e9);
}

TEST(PortsTest, OfMoreNicsThanDevicesEachOwnsSeveral) {
  const auto cluster = Machines(Box(4, 1), ClosOf(8, 3));
  Router router(*cluster);
  EXPECT_EQ(router.ways(), 2u);
  const Route& route = router.Between(1, 31);
  EXPECT_THAT(Names(*cluster, route), Contains(HasSubstr("node0/nic2->leaf")));
  Route other = route;
  other.links = route.others.at(0);
  EXPECT_THAT(Names(*cluster, other), Contains(HasSubstr("node0/nic3->leaf")));
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 20e9);
}

// What is sent is cut as the best machine can send it: where a NIC is down in each, both of the
// other device's count, and where each device has lost one, nothing is cut.
TEST(PortsTest, WhereNicsAreDownInAllMachinesThoseThatAreLeftCount) {
  const auto cluster = Machines(Box(4, 1), ClosOf(8, 3));
  const auto ways_with = [&](const std::string& edits) {
    return Router(
               *ApplyEdits(*cluster, ReadEdits(JsonDocument::FromText(edits, "edits.json").Root())))
        .ways();
  };
  EXPECT_EQ(ways_with(R"([{"links": "node*/nic0->leaf*", "down": true}])"), 2u);
  EXPECT_EQ(ways_with(R"([{"links": "node*/nic0->leaf*", "down": true},
                          {"links": "node*/nic2->leaf*", "down": true}])"),
            1u);
}

TEST(PortsTest, WhatIsHashedIsHashedForEachPort) {
  ClosSpec spec = Planes(2);
  spec.routing = {RouteChoice::kEcmp, 4};
  const auto cluster = Machines(Box(2, 2), spec);
  Router router(*cluster);
  EXPECT_EQ(router.ways(), 8u);
  const Route& route = router.Between(0, 30);
  std::map<std::string, uint32_t> parts;
  ForEachCrossing(route, router.ways(),
                  [&](uint32_t link, uint32_t n) { parts[cluster->LinkName(link)] += n; });
  EXPECT_EQ(parts["node0/nic0->plane0/leaf0"], 4u);
  EXPECT_EQ(parts["node0/nic0->plane1/leaf0"], 4u);
}

TEST(NicSpeedTest, ADeviceTakesTheFastestNicThatItReachesThenTheNearest) {
  NodeSpec node = Box(2, 1);  // one beside each device
  node.host->more_nics = {{1, NicPlace::kSocket, Cable(200), Cable(40)}};
  const auto cluster = Machines(node, ClosOf(8, 3));
  Router router(*cluster);
  for (const uint32_t rank : {0u, 1u})
    EXPECT_THAT(Names(*cluster, router.Between(rank, 30)), Contains(HasSubstr("node0/nic2->leaf")));
  // The slow ones belong to no device.
  node.host->more_nics[0].cable = Cable(5);
  const auto slower = Machines(node, ClosOf(8, 3));
  Router other(*slower);
  EXPECT_THAT(Names(*slower, other.Between(0, 30)), Contains(HasSubstr("node0/nic0->leaf")));
  EXPECT_THAT(Names(*slower, other.Between(1, 30)), Contains(HasSubstr("node0/nic1->leaf")));
  EXPECT_EQ(other.ways(), 1u);
}

TEST(RailOnlyTest, NothingJoinsTheRailsButMachines) {
  const auto cluster = Machines(Box(2, 1), RailOnly());
  for (uint32_t link = 0; link < cluster->link_count(); ++link) {
    const std::string name = cluster->LinkName(link);
    const bool both =
        name.find("rail0") != std::string::npos && name.find("rail1") != std::string::npos;
    EXPECT_FALSE(both) << name;
  }
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 30)), Contains("rail0/leaf0->rail0/spine*"));
  // To the other rail: over NVLink to the device that is on it.
  EXPECT_THAT(Names(*cluster, router.Between(1, 30)),
              ElementsAre("node0/gpu1->node0/nvswitch", "node0/nvswitch->node0/gpu0",
                          "node0/gpu0->node0/pcie0", "node0/pcie0->node0/nic0",
                          "node0/nic0->rail0/leaf0", "rail0/leaf0->rail0/spine*",
                          "rail0/spine*->rail0/leaf3", "rail0/leaf3->node15/nic0",
                          "node15/nic0->node15/pcie0", "node15/pcie0->node15/gpu0"));
}

TEST(RailOnlyTest, WithoutNvLinkTheWayLeadsThroughTheHost) {
  NodeSpec node = Box(2, 1);
  node.nvswitch.reset();
  const auto cluster = Machines(node, RailOnly());
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(1, 2)),
              ElementsAre("node0/gpu1->node0/pcie1", "node0/pcie1->node0/socket0",
                          "node0/socket0->node0/pcie0", "node0/pcie0->node0/nic0",
                          "node0/nic0->rail0/leaf0", "rail0/leaf0->node1/nic0",
                          "node1/nic0->node1/pcie0", "node1/pcie0->node1/gpu0"));
}

TEST(RailOnlyTest, AMachineThatReachesOneRailOnlyIsAMistake) {
  NodeSpec node = Box(2, 1);
  node.nvswitch.reset();
  node.host->root_port.reset();
  EXPECT_THAT(ErrorOf([&] { Machines(node, RailOnly()); }),
              HasSubstr("on separate rails every two devices need NVLinks between them, or a "
                        "way through the host"));
}

TEST(PlanesTest, PortsMustBeDealtEvenly) {
  EXPECT_THAT(ErrorOf([&] { Machines(Box(2, 1), Planes(4)); }),
              HasSubstr("4 planes need as many ports per machine, or a multiple of that, found 2"));
}

}  // namespace ports_test
}  // namespace rehearse
