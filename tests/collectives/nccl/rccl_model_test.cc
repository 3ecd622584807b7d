// RCCL's model by hand: latencies from hops and a base, bandwidths from rings and corrections.
#include "collectives/nccl/rccl_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/rccl_constants.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace rccl_model_test {

constexpr double kMicro = 1e-6;
constexpr double kTiny = 1e-12;

// Routes as long as the hops that RCCL's constants are for.
RcclGroup GroupOf(uint32_t ranks, uint32_t nodes,
                  RcclArchitecture architecture = RcclArchitecture::kMi300x) {
  RcclGroup group;
  group.architecture = architecture;
  group.ranks = ranks;
  group.nodes = nodes;
  group.inside_route = kNvLinkHop;
  group.across_route = kNetworkHop;
  group.rings = BytesPerSecond(300e9);
  group.ring_count = 7;
  group.channels = 28;
  return group;
}

const NcclCost* Of(const std::vector<NcclCost>& costs, NcclAlgorithm algorithm, Protocol protocol) {
  for (const NcclCost& cost : costs)
    if (cost.algorithm == algorithm && cost.protocol == protocol) return &cost;
  return nullptr;
}

constexpr size_t kTree = 0;
constexpr size_t kRing = 1;

TEST(RcclModelTest, RingsTakeABaseAndAHopAStep) {
  const RcclGroup group = GroupOf(8, 1);
  const RcclTables& tables = RcclTablesOf(group.architecture);
  for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
    const auto at = static_cast<size_t>(protocol);
    const double base = protocol == Protocol::kSimple ? 17 : 12;
    // 2(p - 1) steps of an all-reduce, p - 1 of an all-gather.
    const auto reduce = AllCosts(group, CollectiveKind::kAllReduce, Bytes(1 << 20));
    const NcclCost* ring = Of(reduce, NcclAlgorithm::kRing, protocol);
    ASSERT_NE(ring, nullptr);
    EXPECT_NEAR(ring->latency.value(), (base + 14 * tables.inside[kRing][at]) * kMicro, kTiny);
    EXPECT_NEAR(ring->bandwidth.value(), tables.ratio[0][kRing][at] * 300e9 * 8 / 14, 1);
    const auto gather = AllCosts(group, CollectiveKind::kAllGather, Bytes(1 << 20));
    EXPECT_NEAR(Of(gather, NcclAlgorithm::kRing, protocol)->latency.value(),
                (base + 7 * tables.inside[kRing][at]) * kMicro, kTiny);
  }
}

// A broadcast waits for one hop, as its chain is filled while it is used.
TEST(RcclModelTest, RootedCollectivesTakeOneHop) {
  const RcclGroup group = GroupOf(8, 1);
  const RcclTables& tables = RcclTablesOf(group.architecture);
  const auto costs = AllCosts(group, CollectiveKind::kBroadcast, Bytes(1 << 20));
  EXPECT_NEAR(Of(costs, NcclAlgorithm::kRing, Protocol::kLL)->latency.value(),
              (12 + tables.inside[kRing][0]) * kMicro, kTiny);
}

// On one machine: up and down over the 7 other members. Simple only on MI250X.
TEST(RcclModelTest, TreesTakeTheirDepthUpAndDown) {
  for (const auto architecture : {RcclArchitecture::kMi250x, RcclArchitecture::kMi300x}) {
    const RcclGroup group = GroupOf(8, 1, architecture);
    const RcclTables& tables = RcclTablesOf(architecture);
    const auto costs = AllCosts(group, CollectiveKind::kAllReduce, Bytes(1 << 20));
    const NcclCost* tree = Of(costs, NcclAlgorithm::kTree, Protocol::kLL);
    ASSERT_NE(tree, nullptr);
    EXPECT_NEAR(tree->latency.value(), (12 + 2 * 7 * tables.inside[kTree][0]) * kMicro, kTiny);
    // Corrected by the factor of 2^20/64 = 2^14 lines.
    EXPECT_NEAR(tree->bandwidth.value(), tables.ratio[0][kTree][0] / 2 * tables.tree[0][14] * 300e9,
                1);
    EXPECT_EQ(Of(costs, NcclAlgorithm::kTree, Protocol::kSimple) != nullptr,
              architecture == RcclArchitecture::kMi250x);
    EXPECT_EQ(Of(AllCosts(group, CollectiveKind::kAllGather, Bytes(64)), NcclAlgorithm::kTree,
                 Protocol::kLL),
              nullptr);
  }
}

// 8 machines are 3 levels of a tree, up and down, beside 7 members inside; a message of less than a
// line is corrected as one of a line, and of any size above the last as the last.
TEST(RcclModelTest, TreesOfMachinesTakeTheirLevels) {
  const RcclGroup group = GroupOf(64, 8, RcclArchitecture::kMi250x);
  const RcclTables& tables = RcclTablesOf(group.architecture);
  const auto rate = [&](double bytes) {
    return Of(AllCosts(group, CollectiveKind::kAllReduce, Bytes(bytes)), NcclAlgorithm::kTree,
              Protocol::kLL)
        ->bandwidth.value();
  };
  const auto costs = AllCosts(group, CollectiveKind::kAllReduce, Bytes(4096));
  EXPECT_NEAR(Of(costs, NcclAlgorithm::kTree, Protocol::kLL)->latency.value(),
              (12 + 2 * (7 * tables.inside[kTree][0] + 3 * tables.across[kTree][0])) * kMicro,
              kTiny);
  const double whole = tables.ratio[1][kTree][0] / 2 * 300e9;
  EXPECT_NEAR(rate(8), whole * tables.tree[0].front(), 1);
  EXPECT_NEAR(rate(64), whole * tables.tree[0].front(), 1);
  EXPECT_NEAR(rate(128), whole * tables.tree[0][1], 1);
  EXPECT_NEAR(rate(255), whole * tables.tree[0][1], 1);
  EXPECT_NEAR(rate(1e15), whole * tables.tree[0].back(), 1);
}

// 16 ranks on 2 machines: 30 steps, of which 2 cross. Inside, a step takes at least 2 us of the
// hosts' network, with Simple three times that.
TEST(RcclModelTest, RingsOfSeveralMachinesCrossTheNetworkInSomeSteps) {
  RcclGroup group = GroupOf(16, 2, RcclArchitecture::kMi250x);
  const RcclTables& tables = RcclTablesOf(group.architecture);
  for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
    const auto at = static_cast<size_t>(protocol);
    const double base = protocol == Protocol::kSimple ? 17 : 12;
    const double least = protocol == Protocol::kSimple ? 6 : 2;
    const double inside = std::max(tables.inside[kRing][at], least);
    const auto costs = AllCosts(group, CollectiveKind::kAllReduce, Bytes(1 << 20));
    const NcclCost* ring = Of(costs, NcclAlgorithm::kRing, protocol);
    ASSERT_NE(ring, nullptr);
    EXPECT_NEAR(ring->latency.value(), (base + 28 * inside + 2 * tables.across[kRing][at]) * kMicro,
                kTiny);
    EXPECT_NEAR(ring->bandwidth.value(),
                tables.ratio[0][kRing][at] * tables.ring[at][14] * 300e9 * 16 / 30, 1);
  }
}

// What a route takes beyond the hop of the constants is added; half a route takes half. RCCL
// chooses without knowing of routes.
TEST(RcclModelTest, LongRoutesAddTheirWay) {
  RcclGroup group = GroupOf(8, 1);
  const RcclTables& tables = RcclTablesOf(group.architecture);
  const double hop = tables.inside[kRing][0] * kMicro;
  const auto latency = [&] {
    const auto costs = AllCosts(group, CollectiveKind::kAllGather, Bytes(1024));
    const NcclCost* expected = Of(costs, NcclAlgorithm::kRing, Protocol::kLL);
    EXPECT_NEAR(expected->latency.value(), 12e-6 + 7 * hop, kTiny);
    return RcclPaceOf(group, CollectiveKind::kAllGather, Bytes(1024), *expected).latency.value();
  };
  group.inside_route = kNvLinkHop + Seconds(3e-6);
  EXPECT_NEAR(latency(), 12e-6 + 7 * (hop + 3e-6), kTiny);
  group.inside_route = 0.5 * kNvLinkHop;
  EXPECT_NEAR(latency(), 12e-6 + 7 * 0.5 * hop, kTiny);
  group.step_overhead = Seconds(1e-6);
  EXPECT_NEAR(latency(), 12e-6 + 7 * (0.5 * hop + 1e-6), kTiny);
}

// On several machines of MI300X the bytes of a rank decide: LL, then LL128, then Simple.
TEST(RcclModelTest, TheBytesOfARankDecideTheProtocol) {
  const RcclGroup group = GroupOf(16, 2);
  Protocol last = Protocol::kLL;
  std::set<Protocol> seen;
  for (double bytes = 16; bytes < 1e11; bytes *= 2) {
    std::set<Protocol> possible;
    for (const NcclCost& cost : AllCosts(group, CollectiveKind::kAllReduce, Bytes(bytes)))
      possible.insert(cost.protocol);
    ASSERT_EQ(possible.size(), 1u) << bytes;
    EXPECT_GE(*possible.begin(), last) << bytes;
    last = *possible.begin();
    seen.insert(last);
  }
  EXPECT_EQ(seen.size(), 3u);
  const auto older =
      AllCosts(GroupOf(16, 2, RcclArchitecture::kMi250x), CollectiveKind::kAllReduce, Bytes(1024));
  EXPECT_EQ(older.size(), 6u);  // all of tree and ring
}

// Each ring beside the first costs 2 %: two MI300X reach 48 GB/s over one link, four 3 x 45, eight
// 7 x 42.5 GB/s.
TEST(RcclModelTest, RingsShareTheLinks) {
  EXPECT_EQ(ShareOfRings(1), 1);
  EXPECT_NEAR(48 * ShareOfRings(3), 45, 1.2);
  EXPECT_NEAR(48 * ShareOfRings(7), 42.5, 0.1);
  const RcclGroup group = GroupOf(8, 1);
  const auto rate = [&](NcclAlgorithm algorithm, Protocol protocol) {
    return RcclPaceOf(group, CollectiveKind::kAllReduce, Bytes(1),
                      {algorithm, protocol, Seconds(1e-6), {}})
        .bandwidth.value();
  };
  const double rings = 300e9 * ShareOfRings(7);
  EXPECT_NEAR(rate(NcclAlgorithm::kRing, Protocol::kSimple), rings * 8 / 14, 1);
  EXPECT_NEAR(rate(NcclAlgorithm::kRing, Protocol::kLL128), 0.8 * rings * 8 / 14, 1);
  EXPECT_NEAR(rate(NcclAlgorithm::kTree, Protocol::kLL), 0.37 * rings / 2, 1);
}

TEST(RcclModelTest, ArchitecturesAreKnownByTheirNumber) {
  EXPECT_EQ(RcclArchitectureOf(0x90a), RcclArchitecture::kMi250x);
  EXPECT_EQ(RcclArchitectureOf(0x942), RcclArchitecture::kMi300x);
  EXPECT_EQ(RcclArchitectureOf(0x950), RcclArchitecture::kMi355x);
  EXPECT_EQ(RcclArchitectureOf(0x900), std::nullopt);
}

// In one machine a broadcast goes at the rate of the ring, of which an all-gather has p/(p-1); only
// with LL, and not on MI250X, it goes at another.
TEST(RcclModelTest, OnlyLLBroadcastsAtARateOfItsOwn) {
  for (const RcclArchitecture architecture :
       {RcclArchitecture::kMi300x, RcclArchitecture::kMi250x}) {
    const RcclGroup group = GroupOf(8, 1, architecture);
    const auto broadcast = AllCosts(group, CollectiveKind::kBroadcast, Bytes(1 << 20));
    const auto gather = AllCosts(group, CollectiveKind::kAllGather, Bytes(1 << 20));
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      const NcclCost* one = Of(broadcast, NcclAlgorithm::kRing, protocol);
      const NcclCost* other = Of(gather, NcclAlgorithm::kRing, protocol);
      if (one == nullptr || other == nullptr) continue;
      const double ratio = one->bandwidth / (other->bandwidth * (7.0 / 8));
      const bool is_own = protocol == Protocol::kLL && architecture != RcclArchitecture::kMi250x;
      EXPECT_EQ(std::abs(ratio - 1) > 0.01, is_own) << static_cast<int>(protocol) << " " << ratio;
    }
  }
}

}  // namespace rccl_model_test
}  // namespace rehearse
