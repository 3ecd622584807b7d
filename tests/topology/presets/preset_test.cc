#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/cluster/builder.h"
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace preset_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kGib = 1024.0 * 1024 * 1024;

std::unique_ptr<Cluster> Build(const std::string& name,
                               const std::map<std::string, uint32_t>& parameters) {
  return BuildPreset(name, parameters, Place());
}

std::vector<std::string> Names(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

std::string ErrorOf(const std::string& name, const std::map<std::string, uint32_t>& parameters) {
  try {
    BuildPreset(name, parameters, {"a.json", 3, "/cluster"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// ---- The table ----------------------------------------------------------------------------------

TEST(PresetTableTest, EveryRowBuildsWithItsStandards) {
  std::string previous;
  for (const ClusterPreset& preset : ClusterPresets()) {
    EXPECT_LT(previous, preset.name);  // sorted, none twice
    previous = preset.name;
    EXPECT_FALSE(preset.summary.empty());
    EXPECT_FALSE(preset.source.empty());
    const auto cluster = Build(preset.name, {});
    EXPECT_GE(cluster->device_count(), 1u);
    EXPECT_EQ(cluster->DeviceOf(0).name, preset.device);
    EXPECT_FALSE(cluster->notes().empty());  // every one of them simplifies something
  }
}

// Smaller and larger values of every parameter, up to `most`. Cubes are not twisted; slices that
// are come at the end.
std::vector<std::map<std::string, uint32_t>> Sizes(const ClusterPreset& preset, uint32_t most) {
  std::vector<std::map<std::string, uint32_t>> sizes = {{}};
  for (const uint32_t value : {1u, 2u, 3u, 5u, 8u, 33u, 130u, 300u}) {
    std::map<std::string, uint32_t> parameters;
    for (const PresetParameter& parameter : preset.parameters)
      if (parameter.name != "twisted")
        parameters[parameter.name] =
            std::clamp(std::min(value, most), parameter.minimum, parameter.maximum);
    sizes.push_back(parameters);
  }
  if (preset.name == "tpu-v4") {
    sizes.push_back({{"x", 4}, {"y", 4}, {"z", 8}, {"twisted", 1}});
    sizes.push_back({{"x", 8}, {"y", 4}, {"z", 8}, {"twisted", 1}});
  }
  return sizes;
}

// The links follow each other from one device to the other; no vertex is met twice, and no other
// device is met.
void ExpectGoodRoute(const Cluster& cluster, Router& router, uint32_t a, uint32_t b) {
  const Route& route = router.Between(a, b);
  ASSERT_FALSE(route.links.empty());
  VertexId at = cluster.devices()[a];
  std::set<VertexId> met = {at};
  Seconds latency;
  for (const uint32_t link : route.links) {
    ASSERT_EQ(cluster.SourceOf(link), at);
    // A trunk may begin and end among the same switches.
    if (cluster.IsTrunk(link) && cluster.TargetOf(link) == at) continue;
    at = cluster.TargetOf(link);
    ASSERT_TRUE(met.insert(at).second) << "a loop at " << cluster.VertexAt(at).name;
    if (at != cluster.devices()[b]) {
      ASSERT_NE(cluster.VertexAt(at).kind, VertexKind::kDevice);
    }
    latency += cluster.Link(link).latency;
    ASSERT_LE(route.bandwidth.value(), cluster.Link(link).Capacity().value());
  }
  ASSERT_EQ(at, cluster.devices()[b]);
  EXPECT_DOUBLE_EQ(route.latency.value(), latency.value());
  EXPECT_EQ(route.crosses_nodes, cluster.NodeOf(a) != cluster.NodeOf(b));
}

TEST(PresetTableTest, EveryPresetBuildsAtSeveralSizesAndRoutesEveryKindOfPair) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    // Tori have x·y·z devices; racks have 72.
    const uint32_t most = preset.parameters.size() > 1 ? 8 : preset.name == "gb200-nvl72" ? 5 : 300;
    for (const auto& parameters : Sizes(preset, most)) {
      SCOPED_TRACE(preset.name + " " +
                   (parameters.empty() ? "" : std::to_string(parameters.begin()->second)));
      const auto cluster = Build(preset.name, parameters);
      const uint32_t devices = cluster->device_count();
      std::vector<FabricRouting> routings = {{std::nullopt, std::nullopt, 3}};
      if (const Fabric* fabric = FabricOf(*cluster))
        for (const RouteChoice choice : ChoicesOf(*fabric).choices)
          routings.push_back({choice, std::nullopt, 3});
      for (const FabricRouting& routing : routings) {
        Router router(*cluster, routing);
        // From the first, a middle and the last device to strides of 1, 2, 4, … both ways.
        for (const uint32_t from : {0u, devices / 2, devices - 1})
          for (uint32_t stride = 1; stride < devices; stride *= 2) {
            ExpectGoodRoute(*cluster, router, from, (from + stride) % devices);
            ExpectGoodRoute(*cluster, router, (from + stride) % devices, from);
          }
      }
    }
  }
}

// Of all paths, the search takes the one with the smallest latency; the fabrics' own routes must
// not be longer, where they are meant to be minimal and all of a machine's NICs are alike.
TEST(PresetTableTest, MinimalRoutesAreAsShortAsTheSearchFinds) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    const uint32_t most = preset.parameters.size() > 1 ? 4 : preset.name == "gb200-nvl72" ? 1 : 33;
    for (const auto& parameters : Sizes(preset, most)) {
      SCOPED_TRACE(preset.name);
      const auto cluster = Build(preset.name, parameters);
      ClusterBuilder builder(preset.name);  // the same, without its structure
      builder.AddVerticesOf(*cluster);
      for (uint32_t i = 0; i < cluster->link_count(); ++i)
        builder.AddLink(cluster->SourceOf(i), cluster->TargetOf(i), cluster->Link(i));
      const Cluster plain = builder.Finish();
      Router router(*cluster);
      Router search(plain);
      const uint32_t devices = cluster->device_count();
      for (uint32_t stride = 1; stride < devices; stride *= 2)
        for (const uint32_t from : {0u, devices - 1}) {
          const Route& own = router.Between(from, (from + stride) % devices);
          const Route& best = search.Between(from, (from + stride) % devices);
          EXPECT_NEAR(own.latency.value(), best.latency.value(), 1e-12);
          if (!own.crosses_nodes) {
            EXPECT_EQ(own.links, best.links);
          }
        }
    }
  }
}

// Two sockets of 204.8 GB/s over eight; a GB200 has half a Grace.
TEST(PresetTableTest, OnlySlicesOfTheRightShapeAreTwisted) {
  for (const std::map<std::string, uint32_t>& chips :
       {std::map<std::string, uint32_t>{{"x", 4}, {"y", 4}, {"z", 4}},
        {{"x", 4}, {"y", 8}, {"z", 12}},
        {{"x", 2}, {"y", 2}, {"z", 4}},
        {{"x", 4}, {"y", 4}, {"z", 16}}}) {
    std::map<std::string, uint32_t> parameters = chips;
    parameters["twisted"] = 1;
    EXPECT_THAT(ErrorOf("tpu-v4", parameters), HasSubstr("n x n x 2n"));
  }
}

TEST(PresetTableTest, DevicesShareTheirHostsMemory) {
  const auto share = [](const char* preset) {
    return BuildPreset(preset, {}, Place())->DeviceOf(0).host_bandwidth.value();
  };
  EXPECT_DOUBLE_EQ(share("dgx-a100"), 2 * 204.8e9 / 8);
  EXPECT_DOUBLE_EQ(share("gb200-nvl72"), 250e9);
}

TEST(PresetTableTest, ADeviceReplacesAllDevices) {
  const auto cluster = BuildPreset("perlmutter", {{"nodes", 2}}, Place(), &FindDevice("a100-80g"));
  for (uint32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(cluster->DeviceOf(rank).name, "a100-80g");
}

TEST(PresetTableTest, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(ErrorOf("perlmuter", {}),
              AllOf(StartsWith("a.json:3: /cluster: "), HasSubstr("did you mean \"perlmutter\"?")));
  EXPECT_THAT(ErrorOf("perlmutter", {{"node", 4}}),
              AllOf(HasSubstr("no parameter \"node\""), HasSubstr("did you mean \"nodes\"?")));
  EXPECT_THAT(ErrorOf("perlmutter", {{"nodes", 0}}), HasSubstr("is 0, expected 1 to 262144"));
  EXPECT_THAT(ErrorOf("switch", {{"devices", 65537}}), HasSubstr("is 65537, expected 1 to 65536"));
}

// ---- Perlmutter ---------------------------------------------------------------------------------

TEST(PerlmutterTest, ANodeHasFourGpusAndTheirLinks) {
  const auto cluster = Build("perlmutter", {{"nodes", 3}});
  EXPECT_EQ(cluster->device_count(), 12u);
  EXPECT_EQ(cluster->node_count(), 3u);
  EXPECT_EQ(cluster->NodeOf(7), "node1");
  // A node: 6 pairs of GPUs, 6 of quadrants, 4 GPU-socket, 4 socket-NIC, 4 NIC-fabric, both
  // ways: 48. One chassis is in use: its 4 switches, 6 pairs of them.
  EXPECT_EQ(cluster->link_count(), 3u * 48 + 12);
}

TEST(PerlmutterTest, TwoGpusOfANodeReachTheMeasuredBandwidth) {
  const auto cluster = Build("perlmutter", {});
  Router router(*cluster);
  const Route& route = router.Between(1, 3);
  EXPECT_THAT(Names(*cluster, route), ElementsAre("node0/gpu1->node0/gpu3"));
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 76 * kGib);
  EXPECT_DOUBLE_EQ(route.latency.value(), 3.4e-6);
}

TEST(PerlmutterTest, FourGpusOnThreeRingsComeNearTheMeasuredBandwidth) {
  // Not an input. Each GPU sends on its three NVLink pairs at once: 3 · 76 = 228
  // GiB/s; measured 225.
  const auto cluster = Build("perlmutter", {});
  Router router(*cluster);
  double sum = 0;
  for (uint32_t other = 1; other < 4; ++other) sum += router.Between(0, other).bandwidth.value();
  EXPECT_NEAR(sum / kGib, 225, 0.02 * 225);
}

TEST(PerlmutterTest, AGpuLeavesItsNodeThroughItsOwnNic) {
  const auto cluster = Build("perlmutter", {{"nodes", 2}});
  Router router(*cluster);
  const Route& route = router.Between(2, 5);  // node0/gpu2 to node1/gpu1
  EXPECT_THAT(Names(*cluster, route),
              ElementsAre("node0/gpu2->node0/numa2", "node0/numa2->node0/nic2",
                          "node0/nic2->group0/switch2", "group0/switch2->group0/switch1",
                          "group0/switch1->node1/nic1", "node1/nic1->node1/numa1",
                          "node1/numa1->node1/gpu1"));
  EXPECT_TRUE(route.crosses_nodes);
  // The NIC binds, at 20 GiB/s; PCIe passes 0.79 · 31.5 = 24.9 GB/s.
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 20 * kGib);
  // NCCL's network hop: 2 · (2.85 + 0.65 + 3.5) us.
  EXPECT_NEAR(route.latency.value(), 14e-6, 1e-15);
  EXPECT_EQ(cluster->step_overhead(), Seconds(0));
}

TEST(PerlmutterTest, TheFourNicsOfANodeCarryFourTimesOne) {
  // Four routes out of a node share no link: 4 · 20 = 80 GiB/s, the table's figure for whole nodes.
  const auto cluster = Build("perlmutter", {{"nodes", 2}});
  Router router(*cluster);
  std::set<uint32_t> links;
  double sum = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const Route& route = router.Between(i, i + 4);
    links.insert(route.links.begin(), route.links.end());
    sum += route.bandwidth.value();
  }
  EXPECT_EQ(links.size(), 4u * 6);
  EXPECT_DOUBLE_EQ(sum, 80 * kGib);
}

TEST(PerlmutterTest, ACabinetOfNodesIsAGroupOfItsDragonfly) {
  // 129 nodes: 2 groups of 32 switches, each with 32·31/2 pairs, and one bundle of 17 cables per
  // switch between them.
  const auto cluster = Build("perlmutter", {{"nodes", 129}});
  EXPECT_EQ(cluster->link_count(), 129u * 48 + 2 * (2 * 496 + 32));
  Router router(*cluster, {RouteChoice::kMinimal, std::nullopt, std::nullopt});
  // Nodes 0 and 16 are on the switches of the first and the second chassis.
  EXPECT_THAT(Names(*cluster, router.Between(0, 64)),
              ::testing::Contains("group0/switch0->group0/switch4"));
  const Route& route = router.Between(0, 512);
  EXPECT_THAT(Names(*cluster, route), ::testing::Contains("group0/switch0->group1/switch0"));
  EXPECT_NEAR(route.latency.value(), 14e-6, 1e-15);
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 20 * kGib);
}

TEST(PerlmutterTest, InsideAGroupTheNicsBind) {
  // All 16 nodes of a chassis send from one switch to one of another chassis: 16 · 20 GiB/s is what
  // their switches' link passes, so each keeps its NIC's rate.
  const auto cluster = Build("perlmutter", {{"nodes", 128}});
  Router router(*cluster);
  std::map<uint32_t, int> load;
  for (uint32_t node = 0; node < 16; ++node)
    for (const uint32_t link : router.Between(4 * node, 4 * (node + 16)).links) ++load[link];
  for (const auto& [link, count] : load)
    EXPECT_GE(cluster->Link(link).Capacity().value() / count, 20 * kGib * (1 - 1e-12));
}

TEST(PerlmutterTest, MoreGroupsHaveLessGlobalBandwidthEach) {
  // 5 groups: 544/4 = 136 cables between each two, in 32 bundles of 4.25. All 512 GPUs of group 0
  // send to those of group 1: 16 NICs per switch share 4.25 cables.
  const auto cluster = Build("perlmutter", {{"nodes", 640}});
  Router router(*cluster);
  std::map<uint32_t, int> load;
  for (uint32_t rank = 0; rank < 512; ++rank)
    for (const uint32_t link : router.Between(rank, rank + 512).links) ++load[link];
  double slowest = 1e18;
  for (const auto& [link, count] : load)
    slowest = std::min(slowest, cluster->Link(link).Capacity().value() / count);
  EXPECT_NEAR(slowest, 20 * kGib * 4.25 / 16, 1);
}

// ---- DGX A100 -----------------------------------------------------------------------------------

TEST(DgxA100Test, GpusOfABoxMeetAtTheNvSwitch) {
  const auto cluster = Build("dgx-a100", {});
  Router router(*cluster);
  const Route& route = router.Between(0, 7);
  EXPECT_THAT(Names(*cluster, route),
              ElementsAre("node0/gpu0->node0/nvswitch", "node0/nvswitch->node0/gpu7"));
  EXPECT_DOUBLE_EQ(route.latency.value(), 3.4e-6);
  // 12 links of 25 GB/s at 0.765; vTrain measured 229.35 GB/s of bus bandwidth.
  EXPECT_NEAR(route.bandwidth.value(), 229.35e9, 0.001 * 229.35e9);
}

TEST(DgxA100Test, EveryGpuOfABoxUsesAnotherNic) {
  const auto cluster = Build("dgx-a100", {{"nodes", 2}});
  EXPECT_EQ(cluster->device_count(), 16u);
  Router router(*cluster);
  std::set<uint32_t> links;
  double sum = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const Route& route = router.Between(i, 8 + (i + 1) % 8);
    ASSERT_EQ(route.links.size(), 6u);  // 16 ports: one switch
    EXPECT_EQ(cluster->LinkName(route.links[2]), "node0/nic" + std::to_string(i) + "->fabric");
    EXPECT_NEAR(route.latency.value(), 14e-6, 1e-15);
    links.insert(route.links.begin(), route.links.end());
    sum += route.bandwidth.value();
  }
  EXPECT_EQ(links.size(), 8u * 6);
  // 8 NICs of 25 GB/s at 0.955: the 191 GB/s that four boxes reach.
  EXPECT_NEAR(sum, 191e9, 1);
}

TEST(DgxA100Test, TheBigOneDiffersInItsDevices) {
  const auto cluster = Build("dgx-a100-80g", {{"nodes", 2}});
  EXPECT_EQ(cluster->DeviceOf(15).name, "a100-80g");
  EXPECT_DOUBLE_EQ(cluster->DeviceOf(15).memory.value(), 80 * kGib);
}

// ---- Plain switch -------------------------------------------------------------------------------

TEST(PlainSwitchTest, EveryDeviceIsOneCableFromTheSwitch) {
  const auto cluster = Build("switch", {{"devices", 5}});
  EXPECT_EQ(cluster->device_count(), 5u);
  EXPECT_EQ(cluster->node_count(), 5u);
  Router router(*cluster);
  const Route& route = router.Between(4, 1);
  EXPECT_THAT(Names(*cluster, route), ElementsAre("node4/gpu0->switch", "switch->node1/gpu0"));
  EXPECT_DOUBLE_EQ(route.latency.value(), 2e-6);  // two cables of 1 us
  EXPECT_EQ(route.bandwidth, BytesPerSecond(25e9));
}

}  // namespace preset_test
}  // namespace rehearse
