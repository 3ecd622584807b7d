#include "collectives/nccl/nccl_model.h"

#include <gtest/gtest.h>

#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace nccl_model_test {

using enum CollectiveKind;

constexpr double kGigabyte = 1e9;
constexpr double kMegabyte = 1 << 20;

// 8 A100 on an NVSwitch as NCCL counts them: 12 rings of 20 GB/s.
NcclGroup EightA100() {
  NcclGroup group;
  group.generation = NcclGeneration::kAmpere;
  group.ranks = 8;
  group.inside_route = kNvLinkHop;
  group.rings = BytesPerSecond(240 * kGigabyte);
  group.trees = group.rings;
  group.graph_channels = 12;
  group.has_ll128 = true;
  return group;
}

// Four such machines with 8 NICs of 24 GB/s each.
NcclGroup FourMachines() {
  NcclGroup group = EightA100();
  group.ranks = 32;
  group.nodes = 4;
  group.across_route = kNetworkHop;
  group.rings = group.trees = BytesPerSecond(8 * 24 * kGigabyte);
  group.graph_channels = 8;
  return group;
}

NcclCost Cost(const NcclGroup& group, CollectiveKind kind, double bytes, NcclAlgorithm algorithm,
              Protocol protocol) {
  const auto cost = CostOf(group, kind, Bytes(bytes), algorithm, protocol);
  EXPECT_TRUE(cost.has_value());
  return cost.value_or(NcclCost());
}

void ExpectCost(const NcclCost& cost, double microseconds, double gigabytes_per_second) {
  EXPECT_NEAR(cost.latency.value() * 1e6, microseconds, 1e-6);
  EXPECT_NEAR(cost.bandwidth.value() / kGigabyte, gigabytes_per_second, 1e-6);
}

TEST(NcclModelTest, RingsOfOneMachineTakeABaseAndAHopAStep) {
  const NcclGroup group = EightA100();
  // 14 steps. LL: 6.6 + 14·0.6; half of 240 is more than LL's maximum of 87.7, and busbw is 14/8 of
  // algbw.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kLL), 15.0,
             87.7 * 8 / 14);
  // LL128: 14.0 + 14·1.9; 0.92·240 = 220.8 is less than 12 channels of 20.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kLL128), 40.6,
             220.8 * 8 / 14);
  // Simple: 8.4 + 14·3.4.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple), 56.0,
             240.0 * 8 / 14);
  // All-gather has half the steps, and twice the bandwidth: 8.4 + 7·3.4.
  ExpectCost(Cost(group, kAllGather, kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple), 32.2,
             240.0 * 8 / 7);
  // Broadcast fills its chain while it is used: 8.4 + 3.4.
  ExpectCost(Cost(group, kBroadcast, kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple), 11.8,
             240.0);
}

TEST(NcclModelTest, RingsOfSeveralMachinesCrossTheNetworkInSomeSteps) {
  const NcclGroup group = FourMachines();
  // 62 steps, 2·(4−1) = 6 across. LL128: 14 + 56·1.9 + 6·4; 8 channels of 20 are less than
  // 0.92·192 = 176.64.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kLL128), 144.4,
             160.0 * 32 / 62);
  // LL: a hop inside takes at least the network's overhead of 1 us: 6.6 + 56·1 + 6·2.7.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kLL), 78.8,
             20.4 * 32 / 62);
  // Simple: (8.4 + 56·3.4 + 6·14)·1.4 = 282.8·1.4, the plateau, from 64·8·32 = 16,384 bytes on.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple), 395.92,
             192.0 * 32 / 62);
  ExpectCost(Cost(group, kAllReduce, 16383, NcclAlgorithm::kRing, Protocol::kSimple), 282.8,
             192.0 * 32 / 62);
}

TEST(NcclModelTest, TreesTakeTheirDepthUpAndDown) {
  const NcclGroup group = FourMachines();
  // LL128: 14 + 2(7·1.25 + 2·8.5). Simple reaches min(0.92·192, 8·17.8 = 142.4); of it 120/128 =
  // 133.5; half of it as algbw; 1 MiB is 2^14 times 64 bytes, where the correction is 0.6.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kTree, Protocol::kLL128), 65.5,
             133.5 / 2 * 0.6);
  // Simple: 8.4 + 2(7·4 + 2·14) = 120.4; correction 0.5.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kTree, Protocol::kSimple), 120.4,
             142.4 / 2 * 0.5);
  // LL: 6.8 + 2(7·0.6 + 2·5) = 35.2; 142.4/3.8 = 37.47 is more than LL's maximum, 20.4; correction
  // 0.5.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kTree, Protocol::kLL), 35.2,
             20.4 / 2 * 0.5);
}

TEST(NcclModelTest, NvlsTakesOneHop) {
  NcclGroup group = EightA100();
  group.generation = NcclGeneration::kHopper;
  group.rings = BytesPerSecond(360 * kGigabyte);
  group.heads = 8;
  group.head = BytesPerSecond(40 * kGigabyte);
  group.has_nvls = true;
  // 8·40·0.85·7/8 twice, of which 8/14 is algbw.
  ExpectCost(Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kNvls, Protocol::kSimple), 25,
             320 * 0.85 * 7 / 8 * 2 * 8 / 14);
  // Gathering: 7/8 of it once.
  ExpectCost(Cost(group, kAllGather, kMegabyte, NcclAlgorithm::kNvls, Protocol::kSimple), 25,
             320 * 0.85 * 7 / 8 * 7 / 8);
  EXPECT_FALSE(CostOf(group, kAllReduce, Bytes(8), NcclAlgorithm::kNvls, Protocol::kLL));
  group.has_nvls = false;
  EXPECT_FALSE(CostOf(group, kAllReduce, Bytes(8), NcclAlgorithm::kNvls, Protocol::kSimple));
}

// Hops of 14 us, 2 up and 2 down, and 25 us in the switches.
TEST(NcclModelTest, NvlsTreeGoesThroughSwitchesAndUpAndDownATree) {
  NcclGroup group = FourMachines();
  group.generation = NcclGeneration::kHopper;
  group.heads = 8;
  group.head = BytesPerSecond(40 * kGigabyte);
  group.rings = BytesPerSecond(8 * 48 * kGigabyte);
  group.has_nvls = true;
  const auto cost = [&] {
    return Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kNvlsTree, Protocol::kSimple);
  };
  // 8 channels of 45.5 = 364 are less than 8·48 = 384 across and 2·320·0.85·7/8 = 476 inside.
  ExpectCost(cost(), 25 + 4 * 14.0, 364.0 * 32 / 62);
  // With two machines each edge is crossed half as often: 8·57.7 = 461.6 bind, not 2·384.
  group.nodes = 2;
  group.ranks = 16;
  ExpectCost(cost(), 25 + 2 * 14.0, 461.6 * 16 / 30);
  group.head = BytesPerSecond(25 * kGigabyte);
  ExpectCost(cost(), 25 + 2 * 14.0, 200 * 0.85 * 7 / 8 * 2 * 16 / 30);
  EXPECT_FALSE(CostOf(group, kAllGather, Bytes(8), NcclAlgorithm::kNvlsTree, Protocol::kSimple));
}

// 16 machines of one rank: 8 + 4·14/3.5 + 16·2.8 = 68.8 us, where a ring takes 8.4 + 15·14 = 218.4.
TEST(NcclModelTest, PatGathersOneRankOfEachMachineInAFewHops) {
  NcclGroup group = FourMachines();
  group.ranks = group.nodes = 16;
  group.inside_route = Seconds(0);
  group.rings = BytesPerSecond(24 * kGigabyte);
  for (const CollectiveKind kind : {kAllGather, kReduceScatter}) {
    ExpectCost(Cost(group, kind, kMegabyte, NcclAlgorithm::kPat, Protocol::kSimple), 68.8,
               0.75 * 24);
    ExpectCost(Cost(group, kind, kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple), 218.4,
               24.0 * 16 / 15);
  }
  EXPECT_FALSE(CostOf(group, kAllReduce, Bytes(8), NcclAlgorithm::kPat, Protocol::kSimple));
  group.ranks = 32;  // two ranks in each
  EXPECT_FALSE(CostOf(group, kAllGather, Bytes(8), NcclAlgorithm::kPat, Protocol::kSimple));
}

TEST(NcclModelTest, GroupedSendsTakeAPowerOfTwoOfChannels) {
  EXPECT_EQ(PeerChannels(EightA100()), 32u);  // of 24
  EXPECT_EQ(PeerChannels(FourMachines()), 16u);
}

TEST(NcclModelTest, CombinationsThatNcclDoesNotHaveAreNotThere) {
  NcclGroup group = EightA100();
  EXPECT_EQ(AllCosts(group, kAllReduce, Bytes(8)).size(), 6u);  // tree and ring, three protocols
  EXPECT_EQ(AllCosts(group, kAllGather, Bytes(8)).size(), 3u);  // ring
  EXPECT_EQ(AllCosts(group, kAllToAll, Bytes(8)).size(), 0u);   // grouped sends
  group.has_ll128 = false;
  EXPECT_EQ(AllCosts(group, kAllReduce, Bytes(8)).size(), 4u);
}

// What a route has beyond a standard hop is added in full; what it lacks is subtracted in
// proportion.
TEST(NcclModelTest, LongRoutesAddTheirWay) {
  NcclGroup group = FourMachines();
  const auto latency = [&](Protocol protocol) {
    return CostOf(group, kAllGather, Bytes(8), NcclAlgorithm::kRing, protocol)->latency.value() *
           1e6;
  };
  const double simple = latency(Protocol::kSimple);
  const double ll = latency(Protocol::kLL);
  group.across_route = kNetworkHop + Seconds(2e-6);
  EXPECT_NEAR(latency(Protocol::kSimple), simple + 3 * 2, 1e-6);  // 3 steps across
  EXPECT_NEAR(latency(Protocol::kLL), ll + 3 * 2, 1e-6);
  group.across_route = kNetworkHop / 2;
  EXPECT_NEAR(latency(Protocol::kLL), ll - 3 * 2.7 / 2, 1e-6);
}

// NCCL is told of no cable's length: what it weighs is the same on any routes.
TEST(NcclModelTest, RoutesDoNotCountWhenNcclChooses) {
  NcclGroup far = FourMachines();
  far.across_route = kNetworkHop + Seconds(30e-6);
  far.inside_route = kNvLinkHop / 10;
  far.step_overhead = Seconds(5e-6);
  for (const CollectiveKind kind : {kAllReduce, kAllGather}) {
    const auto costs = AllCosts(FourMachines(), kind, Bytes(1 << 20));
    const auto costs_far = AllCosts(far, kind, Bytes(1 << 20));
    ASSERT_EQ(costs.size(), costs_far.size());
    for (size_t i = 0; i < costs.size(); ++i) {
      EXPECT_EQ(costs[i].latency, costs_far[i].latency);
      EXPECT_EQ(costs[i].bandwidth, costs_far[i].bandwidth);
    }
  }
}

TEST(NcclModelTest, TreesFallShortAtMediumSizes) {
  EXPECT_EQ(NcclTreeCorrection(Protocol::kLL, Bytes(8)), 1.0);
  EXPECT_EQ(NcclTreeCorrection(Protocol::kLL, Bytes(64 << 12)), 0.4);
  EXPECT_EQ(NcclTreeCorrection(Protocol::kLL, Bytes((64 << 13) - 1)), 0.4);
  EXPECT_EQ(NcclTreeCorrection(Protocol::kLL, Bytes(64 << 14)), 0.5);
  EXPECT_EQ(NcclTreeCorrection(Protocol::kSimple, Bytes(512.0 * kMegabyte)),
            0.9);  // the last entry
  EXPECT_EQ(NcclTreeCorrection(Protocol::kSimple, Bytes(1024.0 * kMegabyte)), 1.0);
}

TEST(NcclModelTest, SmallCollectivesUseFewChannels) {
  const NcclGroup group = EightA100();
  const auto channels = [&](double bytes, Protocol protocol) {
    return ChannelsFor(group, Cost(group, kAllReduce, bytes, NcclAlgorithm::kRing, protocol),
                       Bytes(bytes));
  };
  // Simple gives a channel 512 threads of 64 bytes: 32 KiB.
  EXPECT_EQ(channels(1, Protocol::kSimple), 1u);
  EXPECT_EQ(channels(5 * 32768, Protocol::kSimple), 5u);
  EXPECT_EQ(channels(1e9, Protocol::kSimple), 24u);
  // Rings with LL 512 threads of 8 bytes for each rank: 32 KiB for 8.
  EXPECT_EQ(channels(3 * 32768, Protocol::kLL), 3u);
  // LL128 640 threads of 8 bytes: 5 KiB.
  EXPECT_EQ(channels(10 * 5120, Protocol::kLL128), 10u);
}

TEST(NcclModelTest, GenerationsBeginWithTheirFirstCapability) {
  EXPECT_EQ(GenerationOf(0), std::nullopt);
  EXPECT_EQ(GenerationOf(60), NcclGeneration::kVolta);
  EXPECT_EQ(GenerationOf(75), NcclGeneration::kVolta);
  EXPECT_EQ(GenerationOf(80), NcclGeneration::kAmpere);
  EXPECT_EQ(GenerationOf(89), NcclGeneration::kAmpere);
  EXPECT_EQ(GenerationOf(90), NcclGeneration::kHopper);
  EXPECT_EQ(GenerationOf(120), NcclGeneration::kBlackwell);
}

// NCCL 2.18 has two hops of its own, both of Simple.
TEST(NcclModelTest, Nccl218DiffersInTwoHops) {
  for (const NcclHop hop : {NcclHop::kNvLink, NcclHop::kPcie, NcclHop::kNetwork}) {
    for (const NcclAlgorithm algorithm : {NcclAlgorithm::kTree, NcclAlgorithm::kRing,
                                          NcclAlgorithm::kNvls, NcclAlgorithm::kNvlsTree}) {
      for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
        const bool is_other = protocol == Protocol::kSimple &&
                              ((hop == NcclHop::kPcie && algorithm == NcclAlgorithm::kTree) ||
                               (hop == NcclHop::kNetwork && algorithm == NcclAlgorithm::kNvlsTree));
        const Seconds old = NcclHopLatency(NcclVersion::kRelease218, hop, algorithm, protocol);
        EXPECT_EQ(old != NcclHopLatency(kStandardNccl, hop, algorithm, protocol), is_other)
            << static_cast<int>(hop) << " " << static_cast<int>(algorithm) << " "
            << static_cast<int>(protocol);
      }
    }
  }
}

// A plug-in's latency counts in each of the 6 steps across, twice with Simple, which flushes.
TEST(NcclModelTest, APluginsLatencyCountsInEachStepAcross) {
  NcclGroup group = FourMachines();
  const auto latency = [&](Protocol protocol) {
    return Cost(group, kAllReduce, 1024, NcclAlgorithm::kRing, protocol).latency.value();
  };
  const double simple = latency(Protocol::kSimple);
  const double ll = latency(Protocol::kLL);
  group.plugin_told = Seconds(3e-6);
  EXPECT_NEAR(latency(Protocol::kSimple) - simple, 6 * 2 * 3e-6, 1e-12);
  EXPECT_NEAR(latency(Protocol::kLL) - ll, 6 * 3e-6, 1e-12);
}

// In 2.18 each of k machines has k/(2(k-1)) of what goes across, which is all rings between two
// machines and half of them between more: of two 2/2 of all, of four 4/6 of half.
TEST(NcclModelTest, NvlsTreesOf218ShareWhatGoesAcross) {
  NcclGroup group = FourMachines();
  group.version = NcclVersion::kRelease218;
  group.generation = NcclGeneration::kHopper;
  group.heads = 8;
  group.head = BytesPerSecond(1000 * kGigabyte);
  group.has_nvls = true;
  const auto bandwidth = [&] {
    return Cost(group, kAllReduce, kMegabyte, NcclAlgorithm::kNvlsTree, Protocol::kSimple)
        .bandwidth.value();
  };
  const double four = bandwidth();
  group.nodes = 2;
  EXPECT_NEAR(bandwidth() / four, 3, 1e-9);
}

// NCCL 2.29 has other figures for Blackwell: 16 channels of LL128 take 34.5 GB/s each instead of
// 0.92 of the rings' 720, so that all-gather on 8 leaves it earlier.
TEST(NcclModelTest, Nccl229LeavesLL128EarlierOnBlackwell) {
  NcclGroup group = EightA100();
  group.generation = NcclGeneration::kBlackwell;
  group.rings = BytesPerSecond(720 * kGigabyte);
  group.graph_channels = 16;
  const auto bandwidth = [&] {
    return Cost(group, kAllGather, kMegabyte, NcclAlgorithm::kRing, Protocol::kLL128)
        .bandwidth.value();
  };
  EXPECT_NEAR(bandwidth() / kGigabyte, 0.92 * 720 * 8 / 7, 1e-6);
  group.version = NcclVersion::kRelease229;
  EXPECT_NEAR(bandwidth() / kGigabyte, 16 * 34.5 * 8 / 7, 1e-6);
  group.generation = NcclGeneration::kHopper;
  EXPECT_NEAR(bandwidth() / kGigabyte, 16 * 36.7 * 8 / 7, 1e-6);
}

// Medium sizes of NVLSTree fall short there as trees do, unless hosts are Graces; a hop across
// takes 20.9 us instead of 14, twice for each of the two levels of four machines.
TEST(NcclModelTest, NvlsTreesOf229FallShortOnBlackwell) {
  NcclGroup group = FourMachines();
  group.generation = NcclGeneration::kBlackwell;
  group.heads = 8;
  group.head = BytesPerSecond(1000 * kGigabyte);
  group.has_nvls = true;
  const double medium = 64 << 14;
  const auto cost = [&] {
    return Cost(group, kAllReduce, medium, NcclAlgorithm::kNvlsTree, Protocol::kSimple);
  };
  const NcclCost of_228 = cost();
  group.version = NcclVersion::kRelease229;
  const double short_of = NcclTreeCorrection(Protocol::kSimple, Bytes(medium));
  EXPECT_LT(short_of, 0.7);
  EXPECT_NEAR(cost().bandwidth / of_228.bandwidth, short_of, 1e-9);
  EXPECT_NEAR((cost().latency - of_228.latency).value() * 1e6, 2 * 2 * (20.9 - 14), 1e-6);
  group.has_x86_hosts = false;
  EXPECT_NEAR(cost().bandwidth / of_228.bandwidth, 1, 1e-9);
}

}  // namespace nccl_model_test
}  // namespace rehearse
