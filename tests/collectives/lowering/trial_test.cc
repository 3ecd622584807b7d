#include "collectives/lowering/trial.h"

#include <numeric>

#include <gtest/gtest.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace trial_test {

using testing::Preset;

TEST(TrialTest, RanksAreDealtRoundRobin) {
  const auto groups = DealRanks({0, 1, 2, 3, 4, 5}, 2, 8);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0], (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_EQ(groups[1], (std::vector<uint32_t>{1, 3, 5}));
}

TEST(TrialTest, WrongRanksAreRefused) {
  EXPECT_THROW(DealRanks({0, 1, 1, 2}, 2, 8), Error);
  EXPECT_THROW(DealRanks({0, 9}, 1, 8), Error);
  EXPECT_THROW(DealRanks({0, 1, 2}, 2, 8), Error);
  EXPECT_THROW(DealRanks({0, 1}, 0, 8), Error);
  EXPECT_THROW(DealRanks({}, 1, 8), Error);
}

TEST(TrialTest, RanksThatDoNotTakePartAreIdle) {
  const auto cluster = Preset("switch", "devices", 8);
  Router router(*cluster);
  Trial trial;
  trial.groups = {{1, 5}};
  // 25 GB/s and 2 us per step: all-reduce of 2 ranks moves n/2 twice.
  EXPECT_NEAR(TimeOf(trial, Bytes(25e6), router).value(), 2 * (0.5e-3 + 2e-6), 1e-9);
}

// Sizes that are played one after the other take as long as each alone.
TEST(TrialTest, SizesTogetherTakeAsLongAsEachAlone) {
  const auto cluster = Preset("switch", "devices", 4);
  Router router(*cluster);
  Trial trial;
  trial.groups = {{0, 1, 2, 3}};
  const std::vector<Bytes> sizes = {Bytes(1e3), Bytes(1e6), Bytes(5e6)};
  const std::vector<Seconds> times = TimesOf(trial, sizes, router);
  ASSERT_EQ(times.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    // 6 steps of a quarter of the bytes at 25 GB/s and 2 us.
    const double expected = 6 * (sizes[i].value() / 4 / 25e9 + 2e-6);
    EXPECT_NEAR(times[i].value(), expected, 1e-3 * expected);
  }
}

TEST(TrialTest, ConcurrentGroupsShareTheNodesNics) {
  // 2 nodes of DGX-A100: one ring of 16 uses all 8 NICs of a node; 8 rings of 2 use one each, and
  // each reaches an eighth of the bus bandwidth.
  const auto cluster = Preset("dgx-a100", "nodes", 2);
  Router router(*cluster);
  std::vector<uint32_t> ranks(16);
  std::iota(ranks.begin(), ranks.end(), 0u);
  const Bytes bytes(8e9);
  const auto busbw = [&](uint32_t groups) {
    Trial trial;
    trial.groups = DealRanks(ranks, groups, 16);
    return BusBandwidth(trial.kind, 16 / groups, bytes, TimeOf(trial, bytes, router)).value();
  };
  EXPECT_NEAR(busbw(1) / busbw(8), 8, 0.05);
}

TEST(TrialTest, BusBandwidthNeverExceedsTheNarrowestLinkOfTheRing) {
  const auto cluster = Preset("perlmutter", "nodes", 4);
  Router router(*cluster);
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    Trial trial;
    trial.groups = {{0, 4, 8, 12}};
    trial.fidelity = fidelity;
    const Bytes bytes(1e9);
    const BytesPerSecond busbw = BusBandwidth(trial.kind, 4, bytes, TimeOf(trial, bytes, router));
    EXPECT_LE(busbw, router.Between(0, 4).bandwidth);
  }
}

}  // namespace trial_test
}  // namespace rehearse
