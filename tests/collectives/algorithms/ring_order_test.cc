#include "collectives/algorithms/ring_order.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/channels.h"
#include "tests/collectives/schedules.h"
#include "topology/cluster/builder.h"

namespace rehearse {
namespace ring_order_test {

// A torus of width × height devices, each a node of its own, 10 GB/s and 1 us a link.
std::unique_ptr<Cluster> Torus(uint32_t width, uint32_t height) {
  ClusterBuilder cluster("torus");
  const auto preset = testing::Preset("switch", "devices", 1);
  const uint32_t spec = cluster.AddDeviceSpec(preset->DeviceOf(0));
  ClusterLink link;
  link.bandwidth = BytesPerSecond(10e9);
  link.latency = Seconds(1e-6);
  // Devices do not forward in this model, so each hangs on a router of its own by a
  // wide, instant link.
  std::vector<VertexId> routers;
  for (uint32_t i = 0; i < width * height; ++i) {
    Vertex device;
    device.name = fmt::format("d{}", i);
    device.node = device.name;
    Vertex router;
    router.name = fmt::format("r{}", i);
    router.kind = VertexKind::kSwitch;
    routers.push_back(cluster.AddVertex(router));
    ClusterLink inside;
    inside.bandwidth = BytesPerSecond(1e12);
    cluster.AddLinks(cluster.AddVertex(device, spec), routers.back(), inside);
  }
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const auto at = [&](uint32_t px, uint32_t py) {
        return routers[(py % height) * width + px % width];
      };
      cluster.AddLinks(at(x, y), at(x + 1, y), link);
      cluster.AddLinks(at(x, y), at(x, y + 1), link);
    }
  }
  return std::make_unique<Cluster>(cluster.Finish());
}

TEST(RingOrderTest, ARingOnATorusGoesFromNeighbourToNeighbour) {
  for (const auto& [width, height] : {std::pair{4u, 4u}, {3u, 4u}, {8u, 6u}}) {
    const auto cluster = Torus(width, height);
    Router router(*cluster);
    std::vector<uint32_t> ranks(width * height);
    std::iota(ranks.begin(), ranks.end(), 0u);
    const auto ordered = OrderRing(router, ranks);
    double latency = 0;
    for (size_t i = 0; i < ordered.size(); ++i) {
      latency += router.Between(ordered[i], ordered[(i + 1) % ordered.size()]).latency.value();
    }
    // width·height hops of 1 us is the least possible. 2-opt need not find it, but comes within two
    // hops; row by row the ring would take `height` hops more.
    EXPECT_LE(latency * 1e6, width * height + 2.001);
    auto sorted = ordered;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, ranks);
  }
}

TEST(RingOrderTest, AnOrderWithoutDoubleCrossingsIsKept) {
  const auto cluster = testing::Preset("switch", "devices", 20);
  Router router(*cluster);
  const std::vector<uint32_t> ranks = {3, 1, 4, 15, 9, 2, 6, 5, 8, 7, 10};
  EXPECT_EQ(OrderRing(router, ranks), ranks);
}

// No two edges can be exchanged for two shorter ones, the last edge included: the definition of a
// tour that is 2-optimal. Members in any order, and machines at random places of the torus.
TEST(RingOrderTest, NoTwoEdgesCanBeExchangedForShorterOnes) {
  const auto cluster = Torus(6, 6);
  Router router(*cluster);
  std::vector<uint32_t> all(36);
  std::iota(all.begin(), all.end(), 0u);
  std::mt19937 random(1);
  uint32_t changed = 0;
  for (uint32_t turn = 0; turn < 40; ++turn) {
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
    const std::vector<uint32_t> ranks(all.begin(), all.begin() + 4 + turn % 20);
    const auto ring = OrderRing(router, ranks);
    if (ring != ranks) ++changed;
    const size_t size = ring.size();
    const auto between = [&](size_t i, size_t j) {
      return router.Between(ring[i % size], ring[j % size]).latency.value();
    };
    if (ring == ranks) continue;
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = i + 2; j < size; ++j) {
        if (j + 1 == size + i) continue;  // they share a member
        EXPECT_LE(between(i, i + 1) + between(j, j + 1),
                  between(i, j) + between(i + 1, j + 1) + 1e-11)
            << "turn " << turn << ", edges " << i << " and " << j;
      }
    }
  }
  EXPECT_GT(changed, 30u);
}

TEST(RingOrderTest, TheResultIsDeterministic) {
  const auto cluster = Torus(5, 5);
  Router first(*cluster);
  Router second(*cluster);
  std::vector<uint32_t> ranks(25);
  std::iota(ranks.begin(), ranks.end(), 0u);
  EXPECT_EQ(OrderRing(first, ranks), OrderRing(second, ranks));
}

}  // namespace ring_order_test
}  // namespace rehearse
