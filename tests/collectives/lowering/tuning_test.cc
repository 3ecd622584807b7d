#include "collectives/lowering/tuning.h"

#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/output_file.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace tuning_test {

using enum CollectiveKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TunerTest : public ::testing::Test {
 protected:
  void Use(const std::string& cluster) { Use(ReadClusterArgument(cluster)); }

  void Use(std::unique_ptr<Cluster> cluster) {
    cluster_ = std::move(cluster);
    router_ = std::make_unique<Router>(*cluster_);
    tuner_ = std::make_unique<Tuner>(*router_);
    ranks_.resize(cluster_->device_count());
    std::iota(ranks_.begin(), ranks_.end(), 0u);
  }

  Choice Choose(CollectiveKind kind, double bytes, const std::string& algorithm = "auto",
                const std::string& protocol = "auto", uint32_t channels = 0) {
    Collective collective;
    collective.kind = kind;
    collective.bytes = Bytes(bytes);
    collective.algorithm = ParseAlgorithm(algorithm);
    collective.protocol = ParseProtocol(protocol);
    return tuner_->Choose({collective, ranks_, channels});
  }

  std::string Words(CollectiveKind kind, double bytes, const std::string& algorithm = "auto",
                    const std::string& protocol = "auto") {
    const Choice choice = Choose(kind, bytes, algorithm, protocol);
    return std::string(choice.algorithm->name()) + " " + Name(choice.protocol);
  }

  std::string Mistake(CollectiveKind kind, const std::string& algorithm,
                      const std::string& protocol) {
    try {
      Choose(kind, 1024, algorithm, protocol);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Tuner> tuner_;
  std::vector<uint32_t> ranks_;
};

// A ring of 8 fills every port of 300·0.765 = 229.5 GB/s, where NCCL's search finds 12 rings of 20.
TEST_F(TunerTest, ADgxA100IsSurveyedAsNcclSeesIt) {
  Use("dgx-a100");
  const NcclGroup group = tuner_->GroupOf(ranks_).nccl.value();
  EXPECT_EQ(group.generation, NcclGeneration::kAmpere);
  EXPECT_EQ(group.nodes, 1u);
  EXPECT_EQ(group.inside, NcclHop::kNvLink);
  EXPECT_NEAR(group.inside_route.value(), kNvLinkHop.value(), 1e-12);
  EXPECT_NEAR(group.reached.value() / 1e9, 229.5, 1e-6);
  EXPECT_NEAR(group.rings.value() / 1e9, 240, 1e-6);
  EXPECT_EQ(group.graph_channels, 12u);
  EXPECT_TRUE(group.has_ll128);
  EXPECT_FALSE(group.has_nvls);
}

// Two machines with 8 NICs of 25·0.955 GB/s: 191 GB/s around the rings; the trees carry twice that
// across, and the NVLinks inside (229.5) do not bind.
TEST_F(TunerTest, TwoMachinesAreRootAndLeafInTurn) {
  Use("dgx-a100:nodes=2");
  const NcclGroup group = tuner_->GroupOf(ranks_).nccl.value();
  EXPECT_EQ(group.nodes, 2u);
  EXPECT_NEAR(group.across_route.value(), kNetworkHop.value(), 1e-12);
  EXPECT_NEAR(group.rings.value() / 1e9, 191, 1e-6);
  EXPECT_NEAR(group.trees.value() / 1e9, 229.5, 1e-6);
  EXPECT_EQ(group.graph_channels, 8u);
}

// LL meets LL128 where 15 + n/B_LL = 40.6 + n/B_LL128, with B = 87.7·8/14 = 50.114 and
// 0.92·240·8/14 = 126.171 GB/s: n = 25.6 us / (1/50.114 − 1/126.171) = 2,128,000 B. LL128 meets
// Simple where 40.6 + n/126.171 = 56 + n/137.143: n = 15.4 us / (1/126.171 − 1/137.143) =
// 24,287,000 B.
TEST_F(TunerTest, EightA100SwitchProtocolsWhereTheLinesCross) {
  Use("dgx-a100");
  EXPECT_EQ(Words(kAllReduce, 8), "ring ll");
  EXPECT_EQ(Words(kAllReduce, 2124e3), "ring ll");
  EXPECT_EQ(Words(kAllReduce, 2132e3), "ring ll128");
  EXPECT_EQ(Words(kAllReduce, 24.2e6), "ring ll128");
  EXPECT_EQ(Words(kAllReduce, 24.4e6), "ring simple");
  EXPECT_EQ(Words(kAllReduce, 8e9), "ring simple");
}

// Latencies of 32 ranks on 4 machines: tree LL 35.2 us, ring LL 78.8 us; long messages go
// around the rings.
TEST_F(TunerTest, FourMachinesUseTreesForShortMessages) {
  Use("dgx-a100:nodes=4");
  EXPECT_EQ(Words(kAllReduce, 8), "tree ll");
  EXPECT_EQ(Words(kAllReduce, 8e9), "ring simple");
  EXPECT_EQ(Words(kAllGather, 8), "ring ll");  // no tree gathers
}

// NCCL's own log on 8 H200 (stas00/ml-engineering, network/benchmarks, on
// NCCL_DEBUG_SUBSYS=TUNING): ring with LL up to 1 MiB, NVLS with Simple from 2 MiB on.
TEST_F(TunerTest, EightH200SwitchWhereNcclLogsIt) {
  Use("dgx-h200");
  for (double bytes = 32768; bytes <= 1 << 20; bytes *= 2)
    EXPECT_EQ(Words(kAllReduce, bytes), "ring ll") << bytes;
  for (double bytes = 2 << 20; bytes <= 16e9; bytes *= 2)
    EXPECT_EQ(Words(kAllReduce, bytes), "nvls simple") << bytes;
}

// Latencies of 32 ranks on 4 machines: tree with LL 35.2, NVLSTree 108.6 us; the rings need 395.9
// us before they are quicker (382 of 364 GB/s).
TEST_F(TunerTest, HoppersOfSeveralMachinesUseTreesOverTheirSwitches) {
  Use("dgx-h100:nodes=4");
  EXPECT_EQ(Words(kAllReduce, 8), "tree ll");
  EXPECT_EQ(Words(kAllReduce, 64e6), "nvls-tree simple");
  EXPECT_EQ(Words(kAllReduce, 8e9), "ring simple");
  ranks_.pop_back();  // a switch with fewer ranks than the others' has no partner
  EXPECT_EQ(Words(kAllReduce, 64e6), "ring ll128");
}

// 128 of them: PAT 394.4 us + n/17.9 GB/s; rings, whose hops are all exposed and take the tree's
// latency, with LL 641.6 us + n/12.0, LL128 1,093.5 us + n/22.1, Simple 1,786 us + n/24.1.
TEST_F(TunerTest, OneGpuOfEachMachineGathersByPat) {
  Use("dgx-a100:nodes=128");
  ranks_.clear();
  for (uint32_t node = 0; node < 128; ++node) ranks_.push_back(node * 8);
  EXPECT_EQ(Words(kAllGather, 8), "pat simple");
  EXPECT_EQ(Words(kAllGather, 4e6), "pat simple");
  EXPECT_EQ(Words(kReduceScatter, 4e6), "pat simple");
  EXPECT_EQ(Words(kAllGather, 8e9), "ring simple");
}

// Launching takes 30 us and one more for each channel. For 8 bytes (one channel) that is longer
// than the 9.5 + 14·1 us of LL; 1 GB with Simple starts with 9.5 + 14·2·4.1 us and 0.28 times what
// 24 chunks of 2 MiB take at 229.5 GB/s, 61.4 us, which is longer than launching 24 channels;
// grouped sends run on 32 channels.
TEST_F(TunerTest, LaunchingCountsWhereItTakesLongerThanTheModelsLatency) {
  const auto plain = ReadClusterArgument("dgx-a100");
  Figures figures = plain->figures();
  figures.collective_overhead = Seconds(30e-6);
  figures.channel_overhead = Seconds(1e-6);
  Use(std::make_unique<Cluster>(plain->With(figures)));
  EXPECT_NEAR(Choose(kAllReduce, 8).start.value() * 1e6, 31, 1e-6);
  EXPECT_NEAR(Choose(kAllReduce, 1e9).start.value() * 1e6, 9.5 + 114.8 + 61.4, 0.05);
  EXPECT_NEAR(Choose(kAllGather, 8e6).start.value() * 1e6, 54, 1e-6);  // 9.5 + 7·2.7 are less
  EXPECT_NEAR(Choose(kAllToAll, 8).start.value() * 1e6, 62, 1e-6);
  EXPECT_EQ(Choose(kAllToAll, 8).nccl_channels, 32u);
  EXPECT_NEAR(Choose(kAllToAll, 8, "auto", "auto", 4).start.value() * 1e6, 34, 1e-6);
  EXPECT_NEAR(Choose(kAllReduce, 8, "ring", "none").start.value() * 1e6, 30, 1e-6);
}

TEST_F(TunerTest, HoppersUseTheirSwitchFromSomeMegabytesOn) {
  Use("dgx-h200");
  EXPECT_EQ(Words(kAllReduce, 8), "ring ll");
  EXPECT_EQ(Words(kAllReduce, 64e6), "nvls simple");
  // 32 KiB of 8 heads on 16 channels are a loop of 4 MiB: 9/8 of it at 1.1·366 GB/s, and 8.24 us;
  // the switch's steps alone would carry 8/9 of 366.
  const double loop = 4 * 1048576.0;
  const double seconds = loop * 9 / 8 / (1.1 * 366e9) + 8 * 1.03e-6;
  EXPECT_NEAR(Choose(kAllReduce, 64e6).bandwidth_share, loop / seconds / (8.0 / 9 * 366e9), 1e-9);
}

TEST_F(TunerTest, PinsAreKept) {
  Use("dgx-a100");
  EXPECT_EQ(Words(kAllReduce, 8e9, "tree"), "tree simple");
  EXPECT_EQ(Words(kAllReduce, 8, "Tree", "LL128"), "tree ll128");
  EXPECT_EQ(Words(kAllReduce, 8e9, "auto", "ll"), "ring ll");
  EXPECT_EQ(Words(kAllReduce, 8e9, "halving-doubling"), "halving-doubling none");
  EXPECT_EQ(Words(kAllReduce, 8, "ring", "none"), "ring none");
  EXPECT_EQ(Words(CollectiveKind::kAllToAll, 8e6, "auto", "none"), "pairwise none");
}

TEST_F(TunerTest, BareLinksCostNothingButTheirSteps) {
  Use("dgx-a100");
  const Choice choice = Choose(kAllReduce, 8, "ring", "none");
  EXPECT_EQ(choice.start, Seconds(0));
  EXPECT_TRUE(choice.steps_wait);
  EXPECT_EQ(choice.bandwidth_share, 1.0);
  EXPECT_EQ(choice.nccl_channels, 0u);
}

TEST_F(TunerTest, AProtocolsLatencyIsWaitedAtTheStart) {
  Use("dgx-a100");
  const Choice choice = Choose(kAllReduce, 8, "ring", "ll");
  EXPECT_NEAR(choice.start.value() * 1e6, 9.5 + 14, 1e-3);
  EXPECT_FALSE(choice.steps_wait);
  EXPECT_NEAR(choice.bandwidth_share, 0.37 * 14 / 14.34, 1e-9);  // its own copy beside 14 steps
}

// 24 channels share 229.5 GB/s; 6 of them push 11.5 each, and a rank's own copy beside them.
TEST_F(TunerTest, FewerChannelsPushLess) {
  Use("dgx-a100");
  const Choice choice = Choose(kAllReduce, 1e9, "ring", "simple", 6);
  EXPECT_EQ(choice.nccl_channels, 6u);
  EXPECT_NEAR(choice.bandwidth_share, 69 / 229.5 * 14 / 14.34, 1e-9);
  EXPECT_NEAR(Choose(kAllReduce, 1e9, "ring", "simple", 24).bandwidth_share, 14 / 14.34, 1e-9);
  // Those of NVLS are as many whatever the rings': 4 of 16 push a quarter.
  Use("dgx-h100");
  const double all = Choose(kAllReduce, 8e9, "nvls", "simple", 16).bandwidth_share;
  EXPECT_LE(Choose(kAllReduce, 8e9, "nvls", "simple", 4).bandwidth_share, 0.25);
  EXPECT_GT(Choose(kAllReduce, 8e9, "nvls", "simple", 4).bandwidth_share, 0.2 * all);
}

// NCCL makes two channels of one whose NIC is faster than 25 GB/s. Where as many are left as
// before, each moves what it moved: 12.5 GB/s of 23.9 by 16 channels, and by 32.
TEST_F(TunerTest, CappedChannelsMoveAsMuchWhereFasterLinksHaveMore) {
  for (const char* const nic : {"25GBps", "28GBps"}) {
    for (const char* const algorithm : {"ring", "tree"}) {
      Use(std::string("dgx-a100:nodes=4,nic=") + nic);
      EXPECT_EQ(tuner_->GroupOf(ranks_).nccl->graph_channels, nic[1] == '5' ? 8u : 16u);
      const Choice capped = Choose(kAllReduce, 1e9, algorithm, "simple", 8);
      const Choice free = Choose(kAllReduce, 1e9, algorithm, "simple");
      // In either, the shares are of the same rings.
      const double reached = tuner_->GroupOf(ranks_).nccl->reached.value();
      EXPECT_NEAR(capped.bandwidth_share * reached / 1e9, 100, 1e-6) << nic << " " << algorithm;
      EXPECT_LT(capped.bandwidth_share, free.bandwidth_share);
    }
  }
}

TEST_F(TunerTest, OtherMakersRunTheFirstAlgorithmThatCan) {
  // On a torus, as XLA does, by all dimensions at once; else a ring.
  Use("tpu-v4:x=2,y=2,z=2");
  EXPECT_EQ(Words(kAllReduce, 8), "bucket none");
  EXPECT_EQ(Words(kAllGather, 8e9), "bucket none");
  EXPECT_EQ(Words(CollectiveKind::kAllToAll, 8e9), "direct none");
  EXPECT_EQ(Words(kBroadcast, 8e9), "chain none");
  EXPECT_THAT(Mistake(kAllReduce, "ring", "ll"), HasSubstr("neither NVIDIA's nor AMD's"));
  EXPECT_EQ(tuner_->LibraryOf(ranks_), "");
}

// Seven rings of 48.2 GB/s. LL: 12 + 14·0.8 us + n/(0.08·337.4·8/14); Simple: 17 + 14·2.1 us +
// n/(337.4·8/14): they meet at 388,000 bytes. RCCL has no tree with Simple on one such box.
TEST_F(TunerTest, AmdsDevicesTakeWhatRcclChooses) {
  Use("mi300x");
  EXPECT_EQ(tuner_->LibraryOf(ranks_), "RCCL");
  EXPECT_NEAR(tuner_->GroupOf(ranks_).rccl->rings.value() / 1e9, 7 * 48.2, 1e-6);
  EXPECT_EQ(Words(kAllReduce, 380e3), "ring ll");
  EXPECT_EQ(Words(kAllReduce, 396e3), "ring simple");
  EXPECT_EQ(Words(kAllReduce, 8e9), "ring simple");
  EXPECT_EQ(Words(kAllGather, 8e9), "ring simple");
  EXPECT_NEAR(Choose(kAllReduce, 8e9).start.value() * 1e6, 17 + 14 * 2.1, 1e-6);
  EXPECT_EQ(Words(kAllToAll, 8e9).substr(0, 4), Words(kAllToAll, 8).substr(0, 4));
  Use("frontier");
  EXPECT_EQ(tuner_->LibraryOf(ranks_), "RCCL");
  EXPECT_EQ(Words(kAllReduce, 8e9), "ring simple");
}

// 2.18 gives LL a quarter of the rings and knows no NVLS for gathering, nor PAT.
TEST_F(TunerTest, OlderNcclChoosesOtherwise) {
  Use("dgx-a100:nodes=16");
  ranks_.clear();
  for (uint32_t node = 0; node < 16; ++node) ranks_.push_back(node * 8);
  EXPECT_EQ(Words(kAllGather, 1e6), "pat simple");
  tuner_ = std::make_unique<Tuner>(*router_, NcclSettings{NcclVersion::kRelease218, true});
  EXPECT_EQ(Words(kAllGather, 1e6), "ring ll128");
  EXPECT_EQ(tuner_->LibraryOf(ranks_), "NCCL 2.18");
}

// EFA delivers out of order: neither LL nor LL128 between machines, and 75 us per hop, twice with
// Simple. Inside a machine nothing changes.
TEST_F(TunerTest, APluginForbidsProtocolsBetweenMachines) {
  Use("aws-p4d:nodes=2");
  EXPECT_EQ(Words(kAllReduce, 8), "tree simple");
  EXPECT_EQ(Words(kAllReduce, 8e9).substr(5), "simple");
  EXPECT_THAT(Mistake(kAllReduce, "ring", "ll128"), HasSubstr("not available"));
  Use("aws-p4d");
  EXPECT_EQ(Words(kAllReduce, 8), "ring ll");
}

// NCCL finds 6 rings of 60 GB/s among 4 H100, and 4 heads of NVLS of 60: 4·60·0.85·3/4·2 = 306 are
// less than 360. With 5 the heads reach 408, with 8 8·40·0.85·7/8·2 = 476.
TEST_F(TunerTest, FewGpusOfASwitchTakeRings) {
  Use("dgx-h100");
  ranks_ = {0, 1, 2, 3};
  EXPECT_EQ(Words(kAllReduce, 256e6), "ring simple");
  ranks_ = {0, 1, 2, 3, 4};
  EXPECT_EQ(Words(kAllReduce, 256e6), "nvls simple");
  Use("dgx-b200");
  ranks_ = {0, 1, 2, 3, 4};  // 5·90·0.74·4/5·2 = 533 of 720
  EXPECT_EQ(Words(kAllReduce, 256e6), "ring simple");
}

TEST_F(TunerTest, SwitchesAddOnlyWhereMachinesHaveEquallyManyMembers) {
  Use("dgx-h100:nodes=2");
  EXPECT_TRUE(tuner_->GroupOf(ranks_).nccl.value().has_nvls);
  ranks_.resize(12);
  EXPECT_FALSE(tuner_->GroupOf(ranks_).nccl.value().has_nvls);
}

TEST_F(TunerTest, FabricsThatCannotSprayAreAskedForWhatTheyTakeFirst) {
  const std::string file = ::testing::TempDir() + "/tuning_hyperx_test.json";
  for (const char* routing : {"valiant", "dimension-order"}) {
    WriteFileAtomically(file, std::string(R"({"name": "x", "nodes": 12,
        "node": {"kind": "pcie", "devices": 1, "device": "h100",
                 "cable": {"bandwidth": "50GBps", "latency": "1us"}},
        "fabric": {"kind": "hyperx", "nodes_per_switch": 1, "routing": ")") +
                                  routing + R"(",
                   "local": [{"size": 4, "link": {"bandwidth": "50GBps", "latency": "1us"}},
                             {"size": 3, "link": {"bandwidth": "50GBps", "latency": "1us"}}]}})");
    Use(file);
    EXPECT_EQ(Words(kAllReduce, 1e9), "ring simple") << routing;
    EXPECT_STREQ(Choose(kAllToAll, 1e9).algorithm->name(), "direct") << routing;
  }
}

TEST_F(TunerTest, WhatCannotBeIsRefused) {
  Use("rtx4090-pcie");
  EXPECT_THAT(Mistake(kAllReduce, "tre", "auto"), HasSubstr("tree"));
  EXPECT_THAT(Mistake(kAllReduce, "ring", "ll12"), HasSubstr("ll128"));
  // LL128 needs NVLink; the others are there.
  EXPECT_THAT(Mistake(kAllReduce, "ring", "ll128"),
              AllOf(HasSubstr("not available"),
                    HasSubstr("expected \"ll\", \"simple\", \"auto\" or \"none\"")));
  EXPECT_THAT(Mistake(kAllReduce, "halving-doubling", "simple"), HasSubstr("expected \"none\""));
  EXPECT_THAT(Mistake(kAllGather, "tree", "auto"), HasSubstr("cannot do all-gather"));
}

}  // namespace tuning_test
}  // namespace rehearse
