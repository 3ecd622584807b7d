#include "topology/fabrics/communication_matrix.h"

#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/cluster/grid.h"
#include "topology/cluster/max_flow.h"
#include "topology/files/cluster_file.h"
#include "topology/files/edits.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace communication_matrix_test {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<Cluster> Read(const std::string& text) {
  return ReadCluster(JsonDocument::FromText(text, "graph.json").Root());
}

std::vector<uint32_t> All(const Cluster& cluster) {
  std::vector<uint32_t> ranks(cluster.device_count());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

CommunicationMatrix MatrixOf(const Cluster& cluster) {
  Router router(cluster);
  return HierarchicalMatrix(router, All(cluster));
}

constexpr BytesPerSecond GigabytesPerSecond(double value) { return BytesPerSecond(value * 1e9); }

// A graph file, written link by link.
class GraphText {
 public:
  void Vertex(const std::string& name, const std::string& kind, const std::string& node = "") {
    vertices_ +=
        fmt::format("{}{{\"name\": \"{}\", \"kind\": \"{}\"{}}}", vertices_.empty() ? "" : ",\n",
                    name, kind, node.empty() ? "" : fmt::format(", \"node\": \"{}\"", node));
  }
  void Link(const std::string& a, const std::string& b, const std::string& kind,
            const std::string& bandwidth) {
    links_ += fmt::format(
        "{}{{\"between\": [\"{}\", \"{}\"], \"kind\": \"{}\", \"bandwidth\": \"{}\", \"latency\": "
        "\"1us\"}}",
        links_.empty() ? "" : ",\n", a, b, kind, bandwidth);
  }
  std::unique_ptr<rehearse::Cluster> Build() const {
    return Read(
        fmt::format("{{\"name\": \"drawn\", \"device\": \"a100-40g\", \"vertices\": "
                    "[{}],\n\"links\": [{}]}}",
                    vertices_, links_));
  }

 private:
  std::string vertices_;
  std::string links_;
};

// ATP's Fig. 7 (a): four nodes, each with 4 GPUs on NVLink v3, 4 links of 50 GB/s per pair, and one
// HDR of 200 Gb/s to a switch.
std::unique_ptr<Cluster> Figure7a() {
  GraphText graph;
  graph.Vertex("ib", "switch");
  for (int n = 0; n < 4; ++n) {
    const std::string node = fmt::format("n{}", n);
    for (int g = 0; g < 4; ++g) graph.Vertex(fmt::format("{}/g{}", node, g), "device", node);
    graph.Vertex(node + "/nic", "nic", node);
    graph.Link(node + "/nic", "ib", "network", "200Gbps");
    for (int g = 0; g < 4; ++g) {
      graph.Link(fmt::format("{}/g{}", node, g), node + "/nic", "pcie", "64GBps");
      for (int h = g + 1; h < 4; ++h)
        graph.Link(fmt::format("{}/g{}", node, g), fmt::format("{}/g{}", node, h), "nvlink",
                   "200GBps");
    }
  }
  return graph.Build();
}

// A torus of columns x rows devices, each on a router of its own; 25 GB/s per link.
std::unique_ptr<Cluster> Torus(int columns, int rows) {
  GraphText graph;
  const auto name = [&](int x, int y) {
    return fmt::format("c{}.{}", (x + columns) % columns, (y + rows) % rows);
  };
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      graph.Vertex(name(x, y), "device");
      graph.Vertex(name(x, y) + "r", "switch");
    }
  }
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      graph.Link(name(x, y), name(x, y) + "r", "network", "10TBps");
      graph.Link(name(x, y) + "r", name(x + 1, y) + "r", "network", "25GBps");
      graph.Link(name(x, y) + "r", name(x, y + 1) + "r", "network", "25GBps");
    }
  }
  return graph.Build();
}

// ---- The paper's figure 7 -----------------------------------------------------------------------

TEST(AtpFigure7Test, NodesOfFullyMeshedGpus) {
  const CommunicationMatrix matrix = MatrixOf(*Figure7a());
  ASSERT_EQ(matrix.layers.size(), 2u);
  // Nodes: 200 Gb/s are 25 GB/s, to one other node or to all.
  const CommunicationLayer& nodes = matrix.layers[0];
  EXPECT_EQ(nodes.siblings, 4u);
  EXPECT_EQ(nodes.groups[1], (std::vector<uint32_t>{4, 5, 6, 7}));
  EXPECT_THAT(nodes.group_bandwidth, Each(GigabytesPerSecond(25)));
  EXPECT_THAT(nodes.point_to_point[1], ElementsAre(GigabytesPerSecond(25), BytesPerSecond(),
                                                   GigabytesPerSecond(25), GigabytesPerSecond(25)));
  // GPUs: "the P2P communication bandwidth is 200 GB/s, while the group bandwidth for each
  // GPU is 600 GB/s".
  const CommunicationLayer& gpus = matrix.layers[1];
  EXPECT_EQ(gpus.siblings, 4u);
  ASSERT_EQ(gpus.groups.size(), 16u);
  EXPECT_THAT(gpus.group_bandwidth, Each(GigabytesPerSecond(600)));
  EXPECT_THAT(gpus.point_to_point[5],
              ElementsAre(GigabytesPerSecond(200), BytesPerSecond(), GigabytesPerSecond(200),
                          GigabytesPerSecond(200)));
}

TEST(AtpFigure7Test, DeviceMeshOf8And2OnTheNodes) {
  // "considering DeviceMesh(8, 2) in Figure 7(a), B'2 ... is equal to 200 GB/s ... B'1 is equal
  // to 12.5 GB/s".
  const MeshBandwidths found = AllReduceBandwidths(MatrixOf(*Figure7a()), 8, 2);
  EXPECT_EQ(found.first, GigabytesPerSecond(12.5));
  EXPECT_EQ(found.second, GigabytesPerSecond(200));
}

TEST(AtpFigure7Test, OtherMeshesOnTheNodes) {
  const CommunicationMatrix matrix = MatrixOf(*Figure7a());
  // (4, 4): the first axis is the nodes, shared by 4 groups; the second a whole node.
  EXPECT_EQ(AllReduceBandwidths(matrix, 4, 4).first, GigabytesPerSecond(25.0 / 4));
  EXPECT_EQ(AllReduceBandwidths(matrix, 4, 4).second, GigabytesPerSecond(600));
  // (16, 1): all GPUs in one group; nothing is shared.
  EXPECT_EQ(AllReduceBandwidths(matrix, 16, 1).first, GigabytesPerSecond(25));
  EXPECT_FALSE(std::isfinite(AllReduceBandwidths(matrix, 16, 1).second.value()));
  // (2, 8): the first axis takes two of four nodes, 25 GB/s shared by 8; the second goes
  // across nodes too.
  EXPECT_EQ(AllReduceBandwidths(matrix, 2, 8).first, GigabytesPerSecond(25.0 / 8));
  EXPECT_EQ(AllReduceBandwidths(matrix, 2, 8).second, GigabytesPerSecond(25));
}

TEST(AtpFigure7Test, ATorusOf4By4) {
  const CommunicationMatrix matrix = MatrixOf(*Torus(4, 4));
  ASSERT_EQ(matrix.layers.size(), 2u);
  // "there are 4 links between rings (one for each device), resulting in a P2P bandwidth of
  // 100 GB/s. The links in both directions on the ring make the group bandwidth twice as
  // large": 200 GB/s.
  const CommunicationLayer& rings = matrix.layers[0];
  EXPECT_EQ(rings.siblings, 4u);
  EXPECT_THAT(rings.group_bandwidth, Each(GigabytesPerSecond(200)));
  EXPECT_THAT(rings.point_to_point[0], ElementsAre(BytesPerSecond(), GigabytesPerSecond(100),
                                                   BytesPerSecond(), GigabytesPerSecond(100)));
  // "devices i and i + 1, i - 1 are connected": 25 GB/s each, 50 together.
  const CommunicationLayer& devices = matrix.layers[1];
  EXPECT_EQ(devices.siblings, 4u);
  EXPECT_THAT(devices.group_bandwidth, Each(GigabytesPerSecond(50)));
  EXPECT_THAT(devices.point_to_point[6], ElementsAre(BytesPerSecond(), GigabytesPerSecond(25),
                                                     BytesPerSecond(), GigabytesPerSecond(25)));
}

TEST(AtpFigure7Test, BothAxesOfATorusFindTheSameBandwidth) {
  // Section 5.4: "both B'1 and B'2 are also equal to GroupBW", here 200 / 4 and 50 GB/s.
  const MeshBandwidths found = AllReduceBandwidths(MatrixOf(*Torus(4, 4)), 4, 4);
  EXPECT_EQ(found.first, GigabytesPerSecond(50));
  EXPECT_EQ(found.second, GigabytesPerSecond(50));
}

// ---- Other machines -----------------------------------------------------------------------------

TEST(HierarchicalMatrixTest, AnNvSwitchHasOneLayer) {
  // Eight GPUs, each with 300 GB/s x 0.765 to the switch: to one other or to all.
  const CommunicationMatrix matrix = MatrixOf(*BuildPreset("dgx-a100", {}, Place()));
  ASSERT_EQ(matrix.layers.size(), 1u);
  EXPECT_THAT(matrix.layers[0].group_bandwidth, Each(GigabytesPerSecond(229.5)));
  EXPECT_EQ(matrix.layers[0].point_to_point[0][7], GigabytesPerSecond(229.5));
}

TEST(HierarchicalMatrixTest, BridgePairsAreALayer) {
  // A small version of ATP's IC2: two pairs, NVLink inside, PCIe through one socket between them.
  GraphText graph;
  graph.Vertex("cpu", "socket");
  for (int g = 0; g < 4; ++g) {
    graph.Vertex(fmt::format("g{}", g), "device");
    graph.Link(fmt::format("g{}", g), "cpu", "pcie", "25GBps");
  }
  graph.Link("g0", "g1", "nvlink", "200GBps");
  graph.Link("g2", "g3", "nvlink", "200GBps");
  const CommunicationMatrix matrix = MatrixOf(*graph.Build());
  ASSERT_EQ(matrix.layers.size(), 2u);
  // A pair has two PCIe links of 25 GB/s to the other.
  EXPECT_THAT(matrix.layers[0].group_bandwidth,
              ElementsAre(GigabytesPerSecond(50), GigabytesPerSecond(50)));
  EXPECT_THAT(matrix.layers[1].group_bandwidth, Each(GigabytesPerSecond(200)));
}

TEST(HierarchicalMatrixTest, SomeOfTheRanks) {
  const auto cluster = BuildPreset("dgx-a100", {{"nodes", 2}}, Place());
  Router router(*cluster);
  const CommunicationMatrix matrix = HierarchicalMatrix(router, {1, 2, 9, 10});
  ASSERT_EQ(matrix.layers.size(), 2u);
  EXPECT_EQ(matrix.layers[0].groups[1], (std::vector<uint32_t>{9, 10}));
  // Two GPUs of a box, a NIC each: 2 x 25 x 0.955.
  EXPECT_NEAR(matrix.layers[0].group_bandwidth[0].value(), 47.75e9, 2);
}

TEST(PairwiseTest, BandwidthAndLatencyAreThoseOfTheRoute) {
  const auto cluster = BuildPreset("dgx-a100", {{"nodes", 2}}, Place());
  Router router(*cluster);
  const PairwiseMatrix pairs = Pairwise(router, {0, 3, 8});
  EXPECT_EQ(pairs.bandwidth[0][0], BytesPerSecond());
  EXPECT_DOUBLE_EQ(pairs.bandwidth[0][1].value(), 229.5e9);
  EXPECT_DOUBLE_EQ(pairs.bandwidth[2][0].value(), 25e9 * 0.955);
  EXPECT_DOUBLE_EQ(pairs.latency[0][1].value(), 3.4e-6);   // NVLink, up and down
  EXPECT_DOUBLE_EQ(pairs.latency[0][2].value(), 14.0e-6);  // NCCL's network hop
}

// ---- Halves -------------------------------------------------------------------------------------

TEST(BisectionTest, TwoBoxesMeetOverTheirNics) {
  // 8 NICs of 25 GB/s x 0.955.
  EXPECT_NEAR(BisectionBandwidth(*BuildPreset("dgx-a100", {{"nodes", 2}}, Place()))->value(),
              8 * 23.875e9, 10);
}

TEST(BisectionTest, ATorusIsCutAcrossItsLongerSide) {
  // 8 x 4: a cut across the dimension of 8 crosses 4 rows, twice (with the wraparound links), 25
  // GB/s each.
  EXPECT_EQ(*BisectionBandwidth(*Torus(8, 4)), GigabytesPerSecond(200));
  EXPECT_EQ(*BisectionBandwidth(*Torus(4, 8)), GigabytesPerSecond(200));
}

TEST(BisectionTest, OneDeviceHasNone) {
  EXPECT_FALSE(BisectionBandwidth(*BuildPreset("switch", {{"devices", 1}}, Place())));
}

TEST(MaxFlowTest, DevicesPassNothingOn) {
  GraphText graph;
  for (const char* name : {"a", "b", "c"}) graph.Vertex(name, "device");
  graph.Link("a", "b", "nvlink", "10GBps");
  graph.Link("b", "c", "nvlink", "10GBps");
  graph.Link("a", "c", "nvlink", "3GBps");
  const auto cluster = graph.Build();
  std::vector<uint32_t> links(cluster->link_count());
  std::iota(links.begin(), links.end(), 0u);
  const auto& devices = cluster->devices();
  EXPECT_EQ(MaxFlow(*cluster, links, {devices[0]}, {devices[2]}), GigabytesPerSecond(3));
  EXPECT_EQ(MaxFlow(*cluster, links, {devices[0], devices[1]}, {devices[2]}),
            GigabytesPerSecond(13));
  EXPECT_EQ(MaxFlow(*cluster, {}, {devices[0]}, {devices[2]}), BytesPerSecond());
}

// ---- Grids --------------------------------------------------------------------------------------

TEST(GridTest, ATorusIsRecognisedWithItsSizes) {
  const auto grid = FindGrid(*Torus(8, 4));
  ASSERT_TRUE(grid);
  EXPECT_THAT(grid->sizes, ElementsAre(8, 4));
  EXPECT_THAT(grid->wraps, ElementsAre(true, true));
  EXPECT_EQ(grid->Coordinate(11, 0), 3u);
  EXPECT_EQ(grid->Coordinate(11, 1), 1u);
}

TEST(GridTest, ADimensionOfTwoIsNoRing) {
  const auto grid = FindGrid(*Torus(4, 2));
  ASSERT_TRUE(grid);
  EXPECT_THAT(grid->sizes, ElementsAre(4, 2));
  EXPECT_THAT(grid->wraps, ElementsAre(true, false));
}

TEST(GridTest, SwitchedMachinesAreNone) {
  EXPECT_FALSE(FindGrid(*BuildPreset("dgx-a100", {}, Place())));
  EXPECT_FALSE(FindGrid(*BuildPreset("perlmutter", {{"nodes", 2}}, Place())));
  EXPECT_FALSE(FindGrid(*BuildPreset("switch", {}, Place())));
}

TEST(GridTest, AMissingLinkMakesItNoTorus) {
  const auto edits = JsonDocument::FromText(R"([{"links": "c1.0r->c2.0r", "down": true}])", "e");
  EXPECT_FALSE(FindGrid(*ApplyEdits(*Torus(4, 4), ReadEdits(edits.Root()))));
}

}  // namespace communication_matrix_test
}  // namespace rehearse
