// Clusters of equal machines, which are stored once, against the same machines drawn one by one.
#include "topology/cluster/equal_machines.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "topology/cluster/builder.h"
#include "topology/cluster/graph.h"
#include "topology/fabrics/router.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace equal_machines_test {

struct Case {
  const char* preset;
  std::map<std::string, uint32_t> parameters;
};

class EqualMachinesTest : public testing::TestWithParam<Case> {
 protected:
  EqualMachinesTest() : cluster_(BuildPreset(GetParam().preset, GetParam().parameters, {})) {}

  Cluster DrawnOneByOne() const {
    ClusterBuilder builder(cluster_->name());
    builder.AddVerticesOf(*cluster_);
    for (uint32_t i = 0; i < cluster_->link_count(); ++i)
      builder.AddLink(cluster_->SourceOf(i), cluster_->TargetOf(i), cluster_->Link(i));
    return builder.Finish();
  }

  const std::unique_ptr<Cluster> cluster_;
};

TEST_P(EqualMachinesTest, AreWhatTheyWouldBeDrawnOneByOne) {
  const Cluster drawn = DrawnOneByOne();
  ASSERT_EQ(drawn.vertex_count(), cluster_->vertex_count());
  std::set<std::string> names;
  for (VertexId id = 0; id < drawn.vertex_count(); ++id) {
    const Vertex vertex = cluster_->VertexAt(id);
    EXPECT_EQ(vertex.name, drawn.VertexAt(id).name);
    EXPECT_EQ(vertex.node, drawn.VertexAt(id).node);
    EXPECT_EQ(cluster_->KindOfVertex(id), drawn.KindOfVertex(id));
    EXPECT_EQ(cluster_->FindVertex(vertex.name), id);
    EXPECT_TRUE(names.insert(vertex.name).second) << vertex.name;
  }
  EXPECT_EQ(cluster_->devices(), drawn.devices());
  EXPECT_EQ(cluster_->node_count(), drawn.node_count());
  for (uint32_t rank = 0; rank < drawn.device_count(); ++rank) {
    EXPECT_EQ(cluster_->NodeIndexOf(rank), drawn.NodeIndexOf(rank));
    EXPECT_EQ(cluster_->DeviceName(rank), drawn.DeviceName(rank));
  }
  ASSERT_EQ(drawn.link_count(), cluster_->link_count());
  for (uint32_t i = 0; i < drawn.link_count(); ++i) {
    EXPECT_EQ(cluster_->LinkName(i), drawn.LinkName(i));
    EXPECT_EQ(cluster_->KindOf(i), drawn.KindOf(i));
    EXPECT_EQ(cluster_->Link(i).Capacity(), drawn.Link(i).Capacity());
    EXPECT_EQ(cluster_->LatencyOf(i), drawn.Link(i).latency);
  }
}

TEST_P(EqualMachinesTest, AsAGraphHaveTheirLinksInOrder) {
  const ClusterGraph& graph = GraphOf(*cluster_);
  ASSERT_EQ(boost::num_vertices(graph), cluster_->vertex_count());
  ASSERT_EQ(boost::num_edges(graph), cluster_->link_count());
  for (VertexId vertex = 0; vertex < cluster_->vertex_count(); ++vertex) {
    uint32_t last = 0;
    for (auto [it, end] = boost::out_edges(vertex, graph); it != end; ++it) {
      EXPECT_EQ(cluster_->SourceOf(graph[*it].index), vertex);
      EXPECT_EQ(cluster_->TargetOf(graph[*it].index), boost::target(*it, graph));
      EXPECT_GE(graph[*it].index, last);
      last = graph[*it].index;
    }
  }
}

// Figures that were changed one by one get a table of their own; the routes are the same.
TEST_P(EqualMachinesTest, HaveTheRoutesOfMachinesWithFiguresOfTheirOwn) {
  Figures figures = cluster_->figures();
  EXPECT_TRUE(figures.links->HasEqualMachines());
  figures.ChangeLinks([](uint32_t, LinkFigures&) {});
  EXPECT_FALSE(figures.links->HasEqualMachines());
  EXPECT_EQ(figures.links->size(), cluster_->link_count());
  const Cluster changed = cluster_->With(std::move(figures));
  Router router(*cluster_);
  Router other(changed);
  EXPECT_TRUE(router.MachinesAreAlike());
  EXPECT_FALSE(other.MachinesAreAlike());
  for (uint32_t a = 0; a < cluster_->device_count(); ++a) {
    for (uint32_t b = 0; b < cluster_->device_count(); ++b) {
      if (a == b) continue;
      const Route& route = router.Between(a, b);
      EXPECT_EQ(route.links, other.Between(a, b).links);
      EXPECT_EQ(route.latency, other.Between(a, b).latency);
      std::vector<uint32_t> links = {7};
      const bool is_plain = router.AppendWay(a, b, &links);
      EXPECT_EQ(is_plain, router.ways() == 1);
      links.erase(links.begin());
      EXPECT_EQ(links, is_plain ? route.links : std::vector<uint32_t>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, EqualMachinesTest,
                         testing::Values(Case{"dgx-a100", {{"nodes", 3}}},
                                         Case{"dgx-h100", {{"nodes", 1}}},
                                         Case{"perlmutter", {{"nodes", 5}}},
                                         Case{"frontier", {{"nodes", 2}}},
                                         Case{"rtx4090-pcie", {{"nodes", 2}}},
                                         Case{"tpu-v4", {{"x", 2}, {"y", 2}, {"z", 4}}},
                                         Case{"switch", {{"devices", 4}}}),
                         [](const testing::TestParamInfo<Case>& one) {
                           std::string name = one.param.preset;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(EqualMachinesNamesTest, AreReadExactly) {
  const auto cluster = BuildPreset("dgx-a100", {{"nodes", 12}}, {});
  EXPECT_EQ(cluster->VertexAt(cluster->FindVertex("node11/gpu7")).name, "node11/gpu7");
  for (const char* name :
       {"node12/gpu0", "node01/gpu0", "node+1/gpu0", "node1/gpu8", "node1/", "node/gpu0", "/gpu0",
        "1/gpu0", "node1", "node1 /gpu0", "", "node99999999999999999999/gpu0"}) {
    EXPECT_THROW(cluster->FindVertex(name), Error) << name;
  }
}

TEST(EqualMachinesNamesTest, NothingIsAddedBehindThem) {
  ClusterBuilder builder("late");
  DeviceSpec device;
  builder.AddDeviceSpec(device);
  EqualMachines machines;
  machines.count = 2;
  machines.prefix = "node";
  machines.parts = {{"gpu0", VertexKind::kDevice}, {"gpu1", VertexKind::kDevice}};
  machines.wires = {{0, 1, LinkKind::kNvLink}, {1, 0, LinkKind::kNvLink}};
  const LinkFigures figures = {BytesPerSecond(1e9), 1, Seconds(0)};
  EXPECT_THROW(builder.AddMachines(machines, {figures}, 0), InternalError) << "one figure missing";
  builder.AddMachines(machines, {figures, figures}, 0);
  EXPECT_EQ(builder.device_count(), 4u);
  EXPECT_EQ(builder.link_count(), 4u);
  EXPECT_THROW(builder.AddVertex({"switch", VertexKind::kSwitch, ""}), InternalError);
  EXPECT_THROW(builder.Finish(), Error) << "nothing joins the machines";
}

}  // namespace equal_machines_test
}  // namespace rehearse
