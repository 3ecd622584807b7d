#include "collectives/algorithms/ring.h"

#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace ring_test {

TEST(RingTest, AllReduceTakesTwiceTheStepsOfAllGather) {
  EXPECT_EQ(RingSteps(CollectiveKind::kAllReduce, 8), 14u);
  EXPECT_EQ(RingSteps(CollectiveKind::kAllGather, 8), 7u);
  EXPECT_EQ(RingSteps(CollectiveKind::kReduceScatter, 8), 7u);
  EXPECT_EQ(RingSteps(CollectiveKind::kAllReduce, 1), 0u);
}

TEST(RingTest, TimeIsStepsTimesBytesAndLatencyOfOneStep) {
  // 4 ranks, 8 MB, 2 MB a step at 1 GB/s = 2 ms, plus 1 us; 6 steps for all-reduce.
  const Seconds time =
      RingTime(CollectiveKind::kAllReduce, 4, Bytes(8e6), BytesPerSecond(1e9), Seconds(1e-6));
  EXPECT_DOUBLE_EQ(time.value(), 6 * (2e-3 + 1e-6));
}

TEST(RingTest, BusBandwidthOfALongRingIsItsEdges) {
  // Without latency an all-reduce of n bytes takes 2(p-1)/p n/B, so busbw is B by definition.
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const Seconds time = RingTime(kind, 6, Bytes(1e9), BytesPerSecond(25e9), Seconds(0));
    EXPECT_NEAR(BusBandwidth(kind, 6, Bytes(1e9), time).value(), 25e9, 1);
  }
}

TEST(RingTest, KindsThatARingCannotDoAreRefused) {
  EXPECT_THROW(RingSteps(CollectiveKind::kAllToAll, 4), Error);
}

}  // namespace ring_test
}  // namespace rehearse
