#include "collectives/algorithms/torus_box.h"

#include <memory>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "collectives/lowering/trial.h"
#include "topology/fabrics/router.h"
#include "topology/presets/machine.h"

namespace rehearse {
namespace torus_box_test {

std::unique_ptr<Cluster> TorusOf(const std::vector<uint32_t>& sizes) {
  TorusSpec spec;
  uint32_t routers = 1;
  for (const uint32_t size : sizes) {
    spec.dimensions.push_back(
        {size, true, MakeLink(LinkKind::kNetwork, BytesPerSecond(100e9), 1, Seconds(1e-6))});
    routers *= size;
  }
  NodeSpec node;
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(600e9), 1, Seconds(1e-6));
  return BuildMachine({"torus", node, routers, spec, {}}, FindDevice("a100-40g"));
}

std::vector<uint32_t> AllOf(const Cluster& cluster) {
  std::vector<uint32_t> ranks(cluster.device_count());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

TEST(TorusBoxTest, TheRingGoesFromNeighbourToNeighbour) {
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{4, 3}, {3, 4}, {5, 2, 3}, {4, 4, 4}, {6}, {16, 8, 8}}) {
    const auto cluster = TorusOf(sizes);
    const auto ring = RingOfNeighbours(*cluster, AllOf(*cluster));
    ASSERT_TRUE(ring);
    EXPECT_EQ(ring->front(), 0u);
    EXPECT_EQ(std::set<uint32_t>(ring->begin(), ring->end()).size(), cluster->device_count());
    Router router(*cluster);
    for (size_t i = 0; i < ring->size(); ++i)  // out, over one cable, in
      ASSERT_EQ(router.Between((*ring)[i], (*ring)[(i + 1) % ring->size()]).links.size(), 3u);
  }
  EXPECT_FALSE(RingOfNeighbours(*TorusOf({3, 5}), AllOf(*TorusOf({3, 5}))));
}

TEST(TorusBoxTest, BothWaysDoNotDependOnTheOrderOfDimensions) {
  std::set<int64_t> picoseconds;
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{16, 8, 5}, {8, 16, 5}, {5, 8, 16}}) {  // more than are searched
    const auto cluster = TorusOf(sizes);
    Router router(*cluster);
    Trial trial;
    trial.groups = {AllOf(*cluster)};
    trial.algorithm = AlgorithmId::kRingBoth;
    const double seconds = TimeOf(trial, Bytes(1e9), router).value();
    picoseconds.insert(static_cast<int64_t>(seconds * 1e12 + 0.5));
    EXPECT_NEAR(seconds, 2 * 639.0 / 640 * 1e9 / 200e9 + 2 * 639 * 3e-6, 1e-5);
  }
  EXPECT_EQ(picoseconds.size(), 1u);
}

}  // namespace torus_box_test
}  // namespace rehearse
