#include "workloads/layouts/layout.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace layout_test {

TEST(LayoutTest, SplitRowsTimesWholeWeightIsSplitRows) {
  // X S(0), W B: Y S(0). dX = dY·W^T stays S(0); dW = X^T·dY sums over the split rows.
  const auto placements = PlaceMatmul(S(0), B());
  ASSERT_TRUE(placements.has_value());
  EXPECT_EQ(placements->y, S(0));
  EXPECT_EQ(placements->dx, S(0));
  EXPECT_EQ(placements->dw, P());
}

TEST(LayoutTest, SplitColumnsOfTheWeightLeaveThePartialSumToTheInputGradient) {
  const auto placements = PlaceMatmul(B(), S(1));
  ASSERT_TRUE(placements.has_value());
  EXPECT_EQ(placements->y, S(1));
  EXPECT_EQ(placements->dx, P());
  EXPECT_EQ(placements->dw, S(1));
}

TEST(LayoutTest, SplitSummedDimensionLeavesPartialSumsInTheOutput) {
  const auto placements = PlaceMatmul(S(1), S(0));
  ASSERT_TRUE(placements.has_value());
  EXPECT_EQ(placements->y, P());
  EXPECT_EQ(placements->dx, S(1));
  EXPECT_EQ(placements->dw, S(0));
}

TEST(LayoutTest, OtherPairsDoNotMultiplyLocally) {
  EXPECT_FALSE(PlaceMatmul(S(0), S(1)).has_value());
  EXPECT_FALSE(PlaceMatmul(S(1), B()).has_value());
  EXPECT_FALSE(PlaceMatmul(P(), B()).has_value());
  EXPECT_FALSE(PlaceMatmul(B(), S(0)).has_value());
}

TEST(LayoutTest, RedistributionsAreThoseOfTheDesign) {
  const auto expect = [](Placement from, Placement to, Move forward, Move backward) {
    const auto move = Redistribute(from, to);
    ASSERT_TRUE(move.has_value()) << ToString(from) << " -> " << ToString(to);
    EXPECT_EQ(move->forward, forward);
    EXPECT_EQ(move->backward, backward);
  };
  expect(P(), B(), Move::kAllReduce, Move::kNone);
  expect(P(), S(0), Move::kReduceScatter, Move::kAllGather);
  expect(S(1), B(), Move::kAllGather, Move::kReduceScatter);
  expect(S(0), S(1), Move::kAllToAll, Move::kAllToAll);
  expect(B(), S(1), Move::kSlice, Move::kAllGather);
  expect(S(1), S(1), Move::kNone, Move::kNone);
  EXPECT_FALSE(Redistribute(B(), P()).has_value());
}

TEST(LayoutTest, PiecesMultiplyOverTheAxesThatSplitADimension) {
  const Layout layout = {S(1), B(), S(0), S(0)};
  EXPECT_EQ(Pieces(layout, {2, 3, 5, 7}, 0), 35u);
  EXPECT_EQ(Pieces(layout, {2, 3, 5, 7}, 1), 2u);
  EXPECT_EQ(ToString(layout), "[S(1), B, S(0), S(0)]");
}

}  // namespace layout_test
}  // namespace rehearse
