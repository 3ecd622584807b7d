#include "topology/devices/overlap_costs.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace overlap_costs_test {

TEST(OverlapCostsTest, NcclsBlocksTakeMultiprocessorsFromWhatRunsBesideThem) {
  // 24 of 108 on one A100 machine: attention cores run at 84/108, so they take 24/84 longer.
  const auto inside = OverlapCostsOf(FindDevice("a100-40g"), false);
  ASSERT_TRUE(inside);
  EXPECT_NEAR(inside->slowdown.attention, 24.0 / 84, 1e-12);
  EXPECT_FALSE(inside->source.empty());
  ASSERT_TRUE(inside->slowdown.waves);
  EXPECT_EQ(inside->slowdown.waves->multiprocessors, 108u);
  EXPECT_EQ(inside->slowdown.waves->taken, 24u);
  // A product of 84 tiles takes one wave on 108 multiprocessors and on 84; one of 100 tiles takes
  // two on 84.
  Compute product;
  product.kind = ComputeKind::kGemm;
  product.gemm = {.m = 128, .n = 84 * 128, .k = 128};
  EXPECT_EQ(SlowdownOf(inside->slowdown, product), 0);
  product.gemm.n = 100 * 128;
  EXPECT_EQ(SlowdownOf(inside->slowdown, product), 1);
}

TEST(OverlapCostsTest, HoppersProductsWaitForTheirOwnBlocks) {
  // 132 multiprocessors less 24: 108 tiles of 128 x 256 have room, and take as long as alone. With
  // more, some blocks start only when others have ended, however many tiles each has.
  const auto inside = OverlapCostsOf(FindDevice("h100"), false);
  ASSERT_TRUE(inside && inside->slowdown.waves);
  Compute product;
  product.kind = ComputeKind::kGemm;
  product.gemm = {.m = 128, .n = 108 * 256, .k = 128};
  EXPECT_EQ(SlowdownOf(inside->slowdown, product), 0);
  product.gemm.n = 109 * 256;
  EXPECT_EQ(SlowdownOf(inside->slowdown, product), 1);
  product.gemm.n = 13200 * 256;
  EXPECT_EQ(SlowdownOf(inside->slowdown, product), 1);
  // Blackwell's do not: 13,200 tiles of 128 x 128 are 90 waves on 148, and 107 on 124.
  product.gemm = {.m = 128, .n = 13200 * 128, .k = 128};
  EXPECT_NEAR(SlowdownOf(OverlapCostsOf(FindDevice("b200"), false)->slowdown, product),
              107.0 / 90 - 1, 1e-12);
}

TEST(OverlapCostsTest, ARingTakesTwiceItsBandwidthOfTheMemory) {
  // 2·230 of 1,555 GB/s are taken: 0.704 is left.
  const auto inside = OverlapCostsOf(FindDevice("a100-40g"), false);
  const double moved = 2 * 230.0 / 1555;
  EXPECT_NEAR(inside->slowdown.memory, moved / (1 - moved), 1e-12);
  // Over NICs, hardly any.
  EXPECT_EQ(OverlapCostsOf(FindDevice("a100-40g"), true)->slowdown.memory, 0);
  EXPECT_EQ(OverlapCostsOf(FindDevice("a100-40g"), true)->slowdown.waves->taken, 16u);
}

TEST(OverlapCostsTest, FamiliesThatNobodyMeasuredHaveNone) {
  EXPECT_FALSE(OverlapCostsOf(FindDevice("p100-16g"), false));
  EXPECT_TRUE(OverlapCostsOf(FindDevice("h100"), false));
  EXPECT_TRUE(OverlapCostsOf(FindDevice("b200"), true));
}

}  // namespace overlap_costs_test
}  // namespace rehearse
