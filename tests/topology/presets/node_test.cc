// Nodes: what contends where inside a machine.
#include "topology/presets/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/fabrics/router.h"
#include "topology/presets/link_rows.h"
#include "topology/presets/machine.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace node_test {

using ::testing::Contains;
using ::testing::ElementsAre;

std::unique_ptr<Cluster> Preset(const std::string& name,
                                const std::map<std::string, uint32_t>& parameters = {}) {
  return BuildPreset(name, parameters, Place());
}

std::vector<std::string> Names(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

// Which links two routes have in common.
std::vector<std::string> Shared(const Cluster& cluster, const Route& a, const Route& b) {
  std::vector<std::string> shared;
  for (const uint32_t link : a.links)
    if (std::find(b.links.begin(), b.links.end(), link) != b.links.end())
      shared.push_back(cluster.LinkName(link));
  return shared;
}

// 8 devices on 4 PCIe switches of two sockets, peer to peer.
NodeSpec PcieBox() {
  Host host;
  host.sockets = 2;
  host.switches = 4;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.root_port = Pcie(kPcie4, kRootPort);
  host.between_sockets = EpycToEpyc();
  NodeSpec node;
  node.devices = 8;
  node.host = host;
  return node;
}

TEST(PcieNodeTest, TwoGpusBehindOneSwitchContendAtItsRootPort) {
  const auto cluster =
      BuildMachine({"box", PcieBox(), 1, std::nullopt, {}}, FindDevice("a100-40g"));
  Router router(*cluster);
  // They talk to each other below it, 5.7 us away.
  EXPECT_THAT(Names(*cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/pcie0", "node0/pcie0->node0/gpu1"));
  EXPECT_DOUBLE_EQ(router.Between(0, 1).latency.value(), 5.7e-6);
  // On the way to the other switch of their socket they share the root port, so each has half of
  // 24.9 GB/s.
  EXPECT_THAT(Shared(*cluster, router.Between(0, 2), router.Between(1, 3)),
              ElementsAre("node0/pcie0->node0/socket0", "node0/socket0->node0/pcie1"));
}

TEST(PcieNodeTest, TwoSocketsShareWhatJoinsThem) {
  const auto cluster =
      BuildMachine({"box", PcieBox(), 1, std::nullopt, {}}, FindDevice("a100-40g"));
  Router router(*cluster);
  EXPECT_THAT(Shared(*cluster, router.Between(0, 4), router.Between(2, 6)),
              ElementsAre("node0/socket0->node0/socket1"));
  // The routes back use the other direction.
  EXPECT_TRUE(Shared(*cluster, router.Between(0, 4), router.Between(4, 0)).empty());
}

TEST(PcieNodeTest, WithoutPeerToPeerEveryCopyGoesThroughTheHostsMemory) {
  const auto cluster = Preset("atp-ic1");
  Router router(*cluster);
  // Even behind one switch.
  EXPECT_THAT(Names(*cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/pcie0/up", "node0/pcie0/up->node0/socket0",
                          "node0/socket0->node0/memory0", "node0/memory0->node0/pcie0/down",
                          "node0/pcie0/down->node0/gpu1"));
  EXPECT_NEAR(router.Between(0, 1).latency.value(), 5.7e-6, 1e-15);
  EXPECT_EQ(cluster->Link(router.Between(0, 1).links[2]).kind, LinkKind::kMemory);
  for (uint32_t a = 0; a < 8; ++a)
    for (uint32_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      int copies = 0;
      for (const uint32_t link : router.Between(a, b).links)
        copies += cluster->Link(link).kind == LinkKind::kMemory ? 1 : 0;
      EXPECT_EQ(copies, 1) << a << " to " << b;
    }
}

TEST(PcieNodeTest, TheCalibratedBoxGivesAtpsFigures) {
  // A ring of 4 in a socket has 4 edges through its memory: 4.95 · 2·3/4 = 7.425 GB/s each. A ring
  // of 8 crosses once each way: 0.97 · 2·7/8 = 1.6975 GB/s.
  const auto cluster = Preset("atp-ic1");
  Router router(*cluster);
  EXPECT_NEAR(cluster->Link(router.Between(0, 1).links[2]).Capacity().value(), 4 * 7.425e9, 1);
  EXPECT_NEAR(router.Between(3, 4).bandwidth.value(), 1.6975e9, 1);
}

TEST(PcieNodeTest, FourRingEdgesThroughEachMemoryGiveTheMeasured4090Plateau) {
  // 15 GB/s per GPU: each socket's memory carries 4 of the ring's 8 edges.
  const auto cluster = Preset("rtx4090-pcie");
  Router router(*cluster);
  std::map<uint32_t, int> load;
  for (uint32_t rank = 0; rank < 8; ++rank)
    for (const uint32_t link : router.Between(rank, (rank + 1) % 8).links) ++load[link];
  double slowest = 1e12;
  for (const auto& [link, count] : load)
    slowest = std::min(slowest, cluster->Link(link).Capacity().value() / count);
  EXPECT_NEAR(slowest, 15e9, 1);
}

TEST(BridgePairsTest, PairsTalkOverTheirBridgeOthersOverTheRootPorts) {
  const auto cluster = Preset("bridge-pairs-a100");
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(2, 3)), ElementsAre("node0/gpu2->node0/gpu3"));
  EXPECT_NEAR(router.Between(2, 3).bandwidth.value(), 208e9, 1);
  EXPECT_THAT(Names(*cluster, router.Between(1, 2)),
              ElementsAre("node0/gpu1->node0/socket0", "node0/socket0->node0/gpu2"));
  EXPECT_NEAR(router.Between(1, 2).bandwidth.value(), 20e9, 1);
}

TEST(CubeMeshTest, EveryGpuHasSixNvLinksAsInTheTopologyMatrix) {
  const auto cluster = Preset("dgx-1-v100");
  for (const auto device : cluster->devices()) {
    double bandwidth = 0;
    for (uint32_t i = 0; i < cluster->link_count(); ++i)
      if (cluster->SourceOf(i) == device && cluster->KindOf(i) == LinkKind::kNvLink)
        bandwidth += cluster->Link(i).bandwidth.value();
    EXPECT_DOUBLE_EQ(bandwidth, 6 * 25e9);
  }
  Router router(*cluster);
  EXPECT_NEAR(router.Between(0, 1).bandwidth.value(), 22.6e9, 1);                 // NV1
  EXPECT_NEAR(router.Between(0, 4).bandwidth.value(), 2 * 22.6e9, 1);             // NV2
  EXPECT_EQ(cluster->Link(router.Between(0, 5).links[0]).kind, LinkKind::kPcie);  // SYS
}

TEST(CubeMeshTest, OneflowsBoxesHaveOneNicForAllGpus) {
  const auto cluster = BuildPreset("oneflow-v100", {{"nodes", 2}}, Place());
  Router router(*cluster);
  EXPECT_NEAR(router.Between(0, 4).bandwidth.value(), 2 * 22.6e9, 1);  // NV2, as in the matrix
  // 100 Gb/s times the efficiency of InfiniBand, from whichever GPU.
  for (const uint32_t gpu : {0u, 2u, 7u}) {
    const Route& route = router.Between(gpu, 8 + gpu);
    EXPECT_LE(route.bandwidth.value(), 12.5e9 * 0.955 + 1);
    EXPECT_THAT(Names(*cluster, route), Contains("node0/nic0->fabric"));
  }
}

TEST(FrontierNodeTest, DiesAreJoinedAsDocumented) {
  const auto cluster = Preset("frontier");
  const double efficiency = 129 * kGib / 200e9;
  Router router(*cluster);
  EXPECT_NEAR(router.Between(0, 1).bandwidth.value(), 200e9 * efficiency, 1);  // one package
  EXPECT_NEAR(router.Between(0, 6).bandwidth.value(), 100e9 * efficiency, 1);
  EXPECT_NEAR(router.Between(0, 2).bandwidth.value(), 50e9 * efficiency, 1);
  EXPECT_THAT(Names(*cluster, router.Between(0, 3)),  // no common link: by way of the CPU
              ElementsAre("node0/gcd0->node0/socket0", "node0/socket0->node0/gcd3"));
  for (const auto device : cluster->devices()) {  // 7 links of each die lead to other dies
    double bandwidth = 0;
    for (uint32_t i = 0; i < cluster->link_count(); ++i)
      if (cluster->SourceOf(i) == device &&
          cluster->VertexAt(cluster->TargetOf(i)).kind == VertexKind::kDevice)
        bandwidth += cluster->Link(i).bandwidth.value();
    EXPECT_DOUBLE_EQ(bandwidth, 7 * 50e9);
  }
}

TEST(FrontierNodeTest, TheDiesOfAPackageShareItsNic) {
  const auto cluster = Preset("frontier", {{"nodes", 2}});
  Router router(*cluster);
  EXPECT_THAT(Shared(*cluster, router.Between(0, 8), router.Between(1, 9)),
              ElementsAre("node0/package0->node0/nic0", "node0/nic0->group0/switch0",
                          "group0/switch0->node1/nic0", "node1/nic0->node1/package0"));
  EXPECT_TRUE(Shared(*cluster, router.Between(0, 8), router.Between(2, 10)).empty());
  EXPECT_NEAR(router.Between(0, 8).latency.value(), 14e-6, 1e-15);
}

TEST(HostedNicTest, WithoutGpuDirectTheNicIsReachedThroughTheHostsMemory) {
  const auto cluster = Preset("piz-daint", {{"nodes", 2}});
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/socket0", "node0/socket0->node0/memory0",
                          "node0/memory0->node0/nic0", "node0/nic0->group0/switch0",
                          "group0/switch0->node1/nic0", "node1/nic0->node1/socket0",
                          "node1/socket0->node1/memory0", "node1/memory0->node1/gpu0"));
  EXPECT_NEAR(router.Between(0, 1).bandwidth.value(), 8.5e9, 1);
}

TEST(HostedNicTest, AllGpusOfAnA2BoxShareItsNic) {
  const auto cluster = Preset("gcp-a2-megagpu-16g");
  Router router(*cluster);
  const auto shared = Shared(*cluster, router.Between(0, 16), router.Between(15, 31));
  EXPECT_THAT(shared, ::testing::Contains("node0/nic0->fabric"));
  EXPECT_THAT(shared, ::testing::Contains("node0/memory0->node0/nic0"));
}

TEST(NodeSizeTest, IsThatOfWhatIsDrawn) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    const NodeSpec spec = DescribePreset(preset.name, {}, Place()).node;
    const NodeSize size = SizeOf(spec);
    const NodeShape shape = DrawNode(spec);
    EXPECT_EQ(size.parts, shape.parts.size()) << preset.name;
    EXPECT_EQ(size.ports, shape.ports.size()) << preset.name;
    EXPECT_GE(size.wires, shape.wires.size()) << preset.name;
  }
}

TEST(CpuNodeTest, RanksShareTheirMemory) {
  const auto cluster = Preset("local-cpu", {{"ranks", 4}});
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 3)),
              ElementsAre("host0/rank0->host0/socket0", "host0/socket0->host0/memory0",
                          "host0/memory0->host0/rank3"));
  EXPECT_THAT(Shared(*cluster, router.Between(0, 3), router.Between(2, 1)),
              ElementsAre("host0/socket0->host0/memory0"));
}

}  // namespace node_test
}  // namespace rehearse
