// How algorithms lay a group out on a machine: parts, their shares, and who stands where.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace arrange_test {

using testing::Preset;

std::vector<Part> PartsOf(const Algorithm& algorithm, const Cluster& cluster, CollectiveKind kind,
                          uint32_t root = 0, uint32_t channels = 0) {
  Router router(cluster);
  ChannelFinder finder(router);
  std::vector<uint32_t> ranks(cluster.device_count());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return algorithm.arrange({kind, root, ranks, channels, router, finder});
}

// Whatever the algorithm: the parts share the bytes, and each has every member once.
TEST(ArrangeTest, PartsShareTheBytesAndHaveEveryMemberOnce) {
  uint32_t arranged = 0;
  for (const auto& cluster : {Preset("perlmutter", "nodes", 2), Preset("dgx-h100", "nodes", 2),
                              Preset("dgx-1-v100", "nodes", 1), Preset("switch", "devices", 6)}) {
    for (const Algorithm& algorithm : Algorithms()) {
      for (const CollectiveKind kind : kCollectiveKinds) {
        if (!algorithm.kinds.Has(kind)) continue;
        SCOPED_TRACE(std::string(algorithm.name()) + " " + Name(kind) + " " + cluster->name());
        std::vector<Part> parts;
        try {
          parts = PartsOf(algorithm, *cluster, kind);
        } catch (const Error&) {  // it does not suit this machine
          continue;
        }
        ++arranged;
        double sum = 0;
        for (const Part& part : parts) {
          sum += part.share;
          std::vector<uint32_t> members = part.order;
          std::sort(members.begin(), members.end());
          ASSERT_EQ(members.size(), cluster->device_count());
          for (uint32_t i = 0; i < members.size(); ++i) ASSERT_EQ(members[i], i);
        }
        EXPECT_NEAR(sum, 1, 1e-12);
      }
    }
  }
  EXPECT_GT(arranged, 60u);
}

// What a root sends goes out from it: it stands first in every part.
TEST(ArrangeTest, ARootStandsFirstInEveryPart) {
  for (const auto& cluster : {Preset("perlmutter", "nodes", 2), Preset("dgx-1-v100", "nodes", 1)}) {
    for (const char* name : {"tree", "ring", "chain"}) {
      for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
        for (const uint32_t root : {0u, 3u, cluster->device_count() - 1}) {
          SCOPED_TRACE(std::string(name) + " " + Name(kind) + " from " + std::to_string(root));
          for (const Part& part :
               PartsOf(FindAlgorithm(ParseAlgorithm(name)), *cluster, kind, root))
            EXPECT_EQ(part.order.front(), root);
        }
      }
    }
  }
}

// A double tree is two parts per channel, of which there is one for each of a machine's four
// devices, or as many as are allowed.
TEST(ArrangeTest, ALimitCapsTheChannelsOfATree) {
  const auto cluster = Preset("perlmutter", "nodes", 2);
  const auto parts = [&](uint32_t channels) {
    return PartsOf(FindAlgorithm(ParseAlgorithm("tree")), *cluster, CollectiveKind::kAllReduce, 0,
                   channels)
        .size();
  };
  EXPECT_EQ(parts(0), 8u);
  EXPECT_EQ(parts(1), 2u);
  EXPECT_EQ(parts(3), 6u);
  EXPECT_EQ(parts(24), 8u);
}

// Members of a machine follow each other in a chain, whatever their order in the group: it comes to
// each machine once.
TEST(ArrangeTest, AChainComesToEachMachineOnce) {
  const auto cluster = Preset("perlmutter", "nodes", 3);
  Router router(*cluster);
  ChannelFinder finder(router);
  const std::vector<uint32_t> ranks = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  const std::vector<Part> parts =
      FindAlgorithm(ParseAlgorithm("chain"))
          .arrange({CollectiveKind::kBroadcast, 0, ranks, 0, router, finder});
  ASSERT_EQ(parts.size(), 1u);
  uint32_t changes = 0;
  for (size_t i = 1; i < parts[0].order.size(); ++i) {
    changes += cluster->NodeIndexOf(ranks[parts[0].order[i]]) !=
               cluster->NodeIndexOf(ranks[parts[0].order[i - 1]]);
  }
  EXPECT_EQ(changes, 2u);
}

}  // namespace arrange_test
}  // namespace rehearse
