#include "topology/fabrics/host_ways.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "topology/cluster/builder.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace host_ways_test {

using ::testing::ElementsAre;

std::vector<std::string> Way(const Cluster& cluster, uint32_t rank, bool to_host) {
  HostWays ways(cluster);
  std::vector<std::string> names;
  for (const uint32_t link : ways.Of(rank, to_host)) names.push_back(cluster.LinkName(link));
  return names;
}

TEST(HostWaysTest, LeadOverThePcieSwitchToTheSocketAndBack) {
  const auto cluster = BuildPreset("dgx-a100", {{"nodes", 2}}, {});
  EXPECT_THAT(Way(*cluster, 0, true),
              ElementsAre("node0/gpu0->node0/pcie0", "node0/pcie0->node0/socket0"));
  EXPECT_THAT(Way(*cluster, 0, false),
              ElementsAre("node0/socket0->node0/pcie0", "node0/pcie0->node0/gpu0"));
  // The same place of the next machine, on the other socket.
  EXPECT_THAT(Way(*cluster, 15, true),
              ElementsAre("node1/gpu7->node1/pcie3", "node1/pcie3->node1/socket1"));
}

TEST(HostWaysTest, WhereCopiesGoThroughTheHostTheyArriveAtItsSocketAndComeFromItsMemory) {
  const auto cluster = BuildPreset("atp-ic1", {}, {});
  const std::vector<std::string> there = Way(*cluster, 0, true);
  const std::vector<std::string> back = Way(*cluster, 0, false);
  EXPECT_THAT(there.back(), ::testing::EndsWith("socket0"));
  EXPECT_THAT(back.front(), ::testing::StartsWith("node0/memory0"));
}

// Every device of every preset has a host or the error says that it has none.
TEST(HostWaysTest, PresetsHaveHosts) {
  std::set<std::string> without;
  for (const ClusterPreset& preset : ClusterPresets()) {
    const auto cluster = BuildPreset(preset.name, {}, {});
    HostWays ways(*cluster);
    try {
      for (uint32_t rank = 0; rank < cluster->device_count(); ++rank) {
        for (const bool to_host : {true, false}) {
          const std::vector<uint32_t> way = ways.Of(rank, to_host);
          ASSERT_FALSE(way.empty());
          const VertexId device = cluster->devices()[rank];
          EXPECT_EQ(to_host ? cluster->SourceOf(way.front()) : cluster->TargetOf(way.back()),
                    device);
          const VertexId end =
              to_host ? cluster->TargetOf(way.back()) : cluster->SourceOf(way.front());
          EXPECT_EQ(cluster->KindOfVertex(end), VertexKind::kSocket);
          for (size_t i = 0; i + 1 < way.size(); ++i)
            EXPECT_EQ(cluster->TargetOf(way[i]), cluster->SourceOf(way[i + 1]));
        }
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("no way to the memory of a host"));
      without.insert(preset.name);
    }
  }
  EXPECT_THAT(without, ElementsAre("atp-ic3", "atp-ic5", "atp-ic6", "switch", "tpu-v4"));
}

// A machine drawn by hand: two sockets, the nearer one by latency is farther by links.
TEST(HostWaysTest, LatencyDecidesBeforeLinksAndNoWayLeadsThroughAnotherDevice) {
  ClusterBuilder builder("drawn");
  const auto preset = BuildPreset("switch", {{"devices", 1}}, {});
  const uint32_t kind = builder.AddDeviceSpec(preset->DeviceOf(0));
  const auto vertex = [&](const char* name, VertexKind of) {
    return builder.AddVertex({name, of, "node"});
  };
  const auto first = builder.AddVertex({"gpu0", VertexKind::kDevice, "node"}, kind);
  const auto second = builder.AddVertex({"gpu1", VertexKind::kDevice, "node"}, kind);
  const auto near = vertex("near", VertexKind::kSocket);
  const auto far = vertex("far", VertexKind::kSocket);
  const auto between = vertex("between", VertexKind::kPcieSwitch);
  ClusterLink link;
  link.kind = LinkKind::kPcie;
  link.bandwidth = BytesPerSecond(1e9);
  const auto join = [&](VertexId a, VertexId b, double latency) {
    link.latency = Seconds(latency);
    builder.AddLinks(a, b, link);
  };
  join(first, far, 5e-6);
  join(first, between, 1e-6);
  join(between, near, 1e-6);
  join(first, second, 1e-7);
  join(second, near, 1e-7);
  const Cluster cluster = builder.Finish();
  EXPECT_THAT(Way(cluster, 0, true), ElementsAre("gpu0->between", "between->near"));
  EXPECT_THAT(Way(cluster, 1, false), ElementsAre("near->gpu1"));
}

}  // namespace host_ways_test
}  // namespace rehearse
