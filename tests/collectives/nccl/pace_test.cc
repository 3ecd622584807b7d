#include "collectives/nccl/pace.h"

#include <cmath>

#include <gtest/gtest.h>

#include "collectives/nccl/nccl_search.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace pace_test {

using enum CollectiveKind;

constexpr double kMegabyte = 1 << 20;

// H100 on an NVSwitch whose rings reach 366 GB/s.
NcclGroup Hoppers(uint32_t ranks) {
  NcclGroup group;
  group.generation = NcclGeneration::kHopper;
  group.ranks = ranks;
  group.inside_route = kNvLinkHop;
  group.reached = group.inside_reached = BytesPerSecond(366e9);
  const NvSwitchSearch found = SearchNvSwitch(group.generation, 18, ranks);
  group.rings = group.trees = found.rings;
  group.graph_channels = found.channels;
  group.heads = found.heads;
  group.head = found.head;
  group.has_ll128 = group.has_nvlinks = group.has_nvls = true;
  return group;
}

double Microseconds(const NcclGroup& group, CollectiveKind kind, double bytes,
                    NcclAlgorithm algorithm, Protocol protocol) {
  const auto cost = CostOf(group, kind, Bytes(bytes), algorithm, protocol);
  EXPECT_TRUE(cost.has_value());
  return NcclPaceOf(group, kind, Bytes(bytes), *cost).Time(Bytes(bytes)).value() * 1e6;
}

double BusBandwidth(const NcclGroup& group, CollectiveKind kind, double bytes) {
  const double time = Microseconds(group, kind, bytes, NcclAlgorithm::kRing, Protocol::kSimple);
  const double ratio = (kind == kAllReduce ? 2.0 : 1.0) * (group.ranks - 1) / group.ranks;
  return bytes * ratio / time / 1e3;
}

// 512 MiB on 8: steps of 64 MiB take 183.4 us at 366 GB/s, more than twice the flag's 9 us, so that
// each adds two slices' 1.93 us. 4.6 + 7·(183.4 + 3.86) + 0.47·183.4 and 0.28·137.5 us of the last
// chunk of 24 channels of 2 MiB: 1,440.
TEST(PaceTest, LongRingsMoveTheirBytesAndTheCopyOfTheirOwn) {
  EXPECT_NEAR(Microseconds(Hoppers(8), kAllGather, 512 * kMegabyte, NcclAlgorithm::kRing,
                           Protocol::kSimple),
              4.6 + 7 * (183.36 + 3.86) + 0.47 * 183.36 + 0.28 * 137.52, 0.5);
}

// Steps of 1 MiB take 2.865 us, less than the flag: 4.6 + 7·(2.865/2 + 9) + 0.47·2.865 +
// 0.28·2.865.
TEST(PaceTest, ShortStepsOfSimpleWaitForTheirFlags) {
  EXPECT_NEAR(
      Microseconds(Hoppers(8), kAllGather, 8 * kMegabyte, NcclAlgorithm::kRing, Protocol::kSimple),
      4.6 + 7 * (2.865 / 2 + 9) + 0.75 * 2.865, 0.05);
}

// The copy of its own block is half of what a rank of two sends, and a fourteenth of what one of
// eight sends.
TEST(PaceTest, TwoGpusReachLessThanEight) {
  EXPECT_LT(BusBandwidth(Hoppers(2), kAllGather, 1e9), 0.75 * 366);
  EXPECT_GT(BusBandwidth(Hoppers(8), kAllGather, 1e9), 0.9 * 366);
  EXPECT_LT(BusBandwidth(Hoppers(8), kAllGather, 1e12), 366);
}

// 64 KiB of 8 heads on 16 channels: loops of 8 MiB, 9/8 of which take 23.44 us at 402.6 GB/s, and
// 8·1.03 us. 256 MiB are 32 of them; before them 6.8 us and 2.85 such loops without overhead.
TEST(PaceTest, NvlsGoesInLoops) {
  EXPECT_NEAR(Microseconds(Hoppers(8), kAllReduce, 256 * kMegabyte, NcclAlgorithm::kNvls,
                           Protocol::kSimple),
              6.8 + 2.85 * 23.44 + 32 * (23.44 + 8.24), 0.5);
}

// A megabyte is no more than a loop: chunks of 16 KiB make one of 2 MiB.
TEST(PaceTest, ALoopIsALoopHoweverLittleIsInIt) {
  EXPECT_NEAR(
      Microseconds(Hoppers(8), kAllReduce, kMegabyte, NcclAlgorithm::kNvls, Protocol::kSimple),
      6.8 + 3.85 * 2.93 + 8.24, 0.05);
}

// A longer message never takes less time, at any size.
TEST(PaceTest, MoreBytesNeverTakeLess) {
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      double before = 0;
      for (double bytes = 8; bytes < 1e10; bytes *= 1.3) {
        const double now =
            Microseconds(Hoppers(ranks), kAllReduce, bytes, NcclAlgorithm::kRing, protocol);
        EXPECT_GE(now, before * (1 - 1e-9)) << ranks << " " << bytes;
        before = now;
      }
    }
  }
}

// A GPU has 4 of its 32 channels of 18 GB/s for one of 8 peers; from 64 MiB on 8, from 128 on 16.
TEST(PaceTest, OnePeerHasFewChannelsUntilMuchIsSent) {
  const NcclGroup group = Hoppers(8);
  const auto share_of = [&](CollectiveKind kind, Bytes bytes) {
    return SendsPaceOf(group, kind, bytes).ShareOf(BytesPerSecond(366e9));
  };
  EXPECT_NEAR(share_of(kSendReceive, Bytes(64 * kMegabyte)), 72.0 / 366, 1e-9);
  EXPECT_NEAR(share_of(kSendReceive, Bytes(65 * kMegabyte)), 144.0 / 366, 1e-9);
  EXPECT_NEAR(share_of(kSendReceive, Bytes(129 * kMegabyte)), 288.0 / 366, 1e-9);
  EXPECT_NEAR(share_of(kSendReceive, Bytes(1e9)), 0.93, 1e-9);
  // All-to-all has 7 peers at a time: 7·72 are more than the links carry.
  EXPECT_NEAR(share_of(kAllToAll, Bytes(64 * kMegabyte)), 0.93, 1e-9);
}

// 12 NVLinks of 20 GB/s: 6 rings of 40, doubled. 18 of 20.6: 6 of 60 make 360, 7 of 50 only 350.
// 18 of 40.1: 8 of 90. Heads: 9·40 = 360 of 370.8; 9·80 = 720 of 721.8; 33·20 of 32.
TEST(NvSwitchSearchTest, FindsWhatNcclLogs) {
  const NvSwitchSearch a100 = SearchNvSwitch(NcclGeneration::kAmpere, 12, 8);
  EXPECT_NEAR(a100.rings.value() / 1e9, 240, 1e-6);
  EXPECT_EQ(a100.channels, 12u);
  const NvSwitchSearch h100 = SearchNvSwitch(NcclGeneration::kHopper, 18, 8);
  EXPECT_NEAR(h100.rings.value() / 1e9, 360, 1e-6);
  EXPECT_EQ(h100.channels, 12u);
  EXPECT_NEAR(h100.head.value() / 1e9, 40, 1e-6);
  const NvSwitchSearch b200 = SearchNvSwitch(NcclGeneration::kBlackwell, 18, 8);
  EXPECT_NEAR(b200.rings.value() / 1e9, 720, 1e-6);
  EXPECT_EQ(b200.channels, 16u);
  EXPECT_NEAR(b200.head.value() / 1e9, 80, 1e-6);
  const NvSwitchSearch rack = SearchNvSwitch(NcclGeneration::kBlackwell, 18, 72);
  EXPECT_EQ(rack.heads, 32u);
  EXPECT_NEAR(rack.head.value() / 1e9, 20, 1e-6);
}

// Loops of 64 KiB a head from 64 MiB on (8 loops), of 32 below, of 16 below 8 MiB (2 of those):
// W of 8, 4 and 2 MiB take 23.44, 11.72 and 5.86 us and 8.24 more each.
TEST(PaceTest, NvlsTakesSmallerLoopsOfLessBytes) {
  const auto time = [](double megabytes) {
    return Microseconds(Hoppers(8), kAllReduce, megabytes * kMegabyte, NcclAlgorithm::kNvls,
                        Protocol::kSimple);
  };
  EXPECT_NEAR(time(64), 6.8 + 2.85 * 23.44 + 8 * (23.44 + 8.24), 0.5);
  EXPECT_NEAR(time(32), 6.8 + 2.85 * 11.72 + 8 * (11.72 + 8.24), 0.3);
  EXPECT_NEAR(time(8), 6.8 + 2.85 * 11.72 + 2 * (11.72 + 8.24), 0.3);
  EXPECT_NEAR(time(6), 6.8 + 2.85 * 5.86 + 3 * (5.86 + 8.24), 0.2);
}

// Blackwell's largest chunks are of 128 KiB, on 32 channels of 8 heads: 64 loops of them are 2 GiB.
// From there on, 64 loops have the overhead that 128 had a byte before, 8·1.03 us each; and the
// pipeline takes 16 MiB more to fill, 9/8 of which move in 57.3 us at 329.4 GB/s.
TEST(PaceTest, TheLargestLoopsBeginAtSixtyFour) {
  NcclGroup group = Hoppers(8);
  group.generation = NcclGeneration::kBlackwell;
  const auto time = [&](double bytes) {
    return Microseconds(group, kAllReduce, bytes, NcclAlgorithm::kNvls, Protocol::kSimple);
  };
  const double most = 2048 * kMegabyte;
  EXPECT_NEAR(time(most - 1) - time(most), 64 * 8 * 1.03 - 2.85 * 57.3, 0.5);
  EXPECT_GT(time(most + 32 * kMegabyte), time(most));
}

// With h heads and 16 channels, NVLSTree's loops double at h MiB (1 loop of 64 KiB) and at 8h (4 of
// 128): what fills the pipeline grows by h/2 MiB there and by h here.
TEST(PaceTest, LoopsOfNvlsTreesDoubleTwice) {
  NcclGroup group = Hoppers(16);
  group.nodes = 2;
  group.reached = BytesPerSecond(400e9);
  group.across_route = kNetworkHop;
  const auto jump = [&](double megabytes) {
    NcclCost cost;
    cost.algorithm = NcclAlgorithm::kNvlsTree;
    const auto time = [&](double bytes) {
      return NcclPaceOf(group, kAllReduce, Bytes(bytes), cost).Time(Bytes(bytes)).value();
    };
    const double bytes = megabytes * kMegabyte;
    return time(bytes) - time(bytes - 1);
  };
  const double heads = group.heads;
  EXPECT_GT(jump(heads), 1e-6);
  EXPECT_NEAR(jump(8 * heads), 2 * jump(heads), 1e-9);
  EXPECT_NEAR(jump(4 * heads), 0, 1e-9);
}

// 24 of 25 GB/s are slow, and so are 48 of 50 on more than four NICs; fewer, or faster ones, have
// two channels each.
TEST(NvSwitchSearchTest, AFastNicHasTwoChannels) {
  const auto channels = [](NcclGeneration generation, double gigabytes, uint32_t nics) {
    return ChannelsOfANic(generation, BytesPerSecond(gigabytes * 1e9), nics);
  };
  EXPECT_EQ(channels(NcclGeneration::kAmpere, 25, 1), 1u);
  EXPECT_EQ(channels(NcclGeneration::kHopper, 50, 8), 1u);
  EXPECT_EQ(channels(NcclGeneration::kHopper, 50, 4), 2u);
  EXPECT_EQ(channels(NcclGeneration::kBlackwell, 100, 8), 2u);
}

// What a plug-in reports decides what NCCL chooses; what it takes decides how long that takes: with
// Simple, two of 2 times 10 us, to the root and back.
TEST(PaceTest, ReportedLatencyIsNoTime) {
  NcclGroup group = Hoppers(16);
  group.nodes = 2;
  group.across_route = kNetworkHop;
  const double idle = Microseconds(group, kAllReduce, 1, NcclAlgorithm::kTree, Protocol::kSimple);
  group.plugin_told = Seconds(75e-6);
  EXPECT_NEAR(Microseconds(group, kAllReduce, 1, NcclAlgorithm::kTree, Protocol::kSimple), idle,
              0.01);
  group.plugin_latency = Seconds(10e-6);
  EXPECT_NEAR(Microseconds(group, kAllReduce, 1, NcclAlgorithm::kTree, Protocol::kSimple),
              idle + 2 * 2 * 10, 0.01);
  // More than 8 KiB are announced.
  group.plugin_eager = Bytes(8192);
  const double now = Microseconds(group, kAllReduce, 8192, NcclAlgorithm::kTree, Protocol::kLL);
  EXPECT_NEAR(Microseconds(group, kAllReduce, 8193, NcclAlgorithm::kTree, Protocol::kLL),
              now + 2 * 2 * 10, 0.01);
}

// Sends to another machine run on two channels of 9.8 GB/s; on one, where twice 40 ranks are more
// than four times the 16 channels for peers.
TEST(PaceTest, APeerInAnotherMachineHasFewChannels) {
  NcclGroup group = Hoppers(16);
  group.nodes = 2;
  group.graph_channels = group.nics = 8;
  group.nic = group.nic_capacity = BytesPerSecond(49e9);
  const auto share_of = [&](CollectiveKind kind, double rate) {
    return SendsPaceOf(group, kind, Bytes(1e9)).ShareOf(BytesPerSecond(rate));
  };
  EXPECT_NEAR(share_of(kSendReceive, 49e9), 2 * 9.8 / 49, 1e-9);
  EXPECT_NEAR(share_of(kAllToAll, 49e9), 0.85, 1e-9);
  group.ranks = 40;
  group.nodes = 5;
  EXPECT_NEAR(share_of(kSendReceive, 49e9), 9.8 / 49, 1e-9);
  // Behind a slower link, channels are no reason to be slower than it.
  EXPECT_NEAR(share_of(kSendReceive, 10e9), 0.85, 1e-9);
}

// 16 ranks on 2 machines: of 30 steps 2 go across, so 28 steps inside take a kernel's 9 us, half
// of whose bytes' 1 us is moved meanwhile, instead of the hop that NCCL expects.
TEST(PaceTest, RingsAcrossTakeTheirStepsInside) {
  NcclGroup group = Hoppers(16);
  group.nodes = 2;
  group.nics = 8;
  NcclCost cost;
  cost.latency = Seconds(100e-6);
  cost.bandwidth = BytesPerSecond(1e9);
  const Bytes bytes(16 * 366e9 * 1e-6);  // 1 us a step at 366 GB/s
  const double with = NcclPaceOf(group, kAllReduce, bytes, cost).latency.value();
  group.inside_reached = BytesPerSecond(0);
  const double without = NcclPaceOf(group, kAllReduce, bytes, cost).latency.value();
  const double expected =
      NcclHopLatency(group.version, NcclHop::kNvLink, NcclAlgorithm::kRing, Protocol::kSimple)
          .value();
  EXPECT_NEAR(with - without, 28 * (9e-6 - 0.5e-6 - expected), 1e-12);
}

}  // namespace pace_test
}  // namespace rehearse
