#include "workloads/layouts/redistribution.h"

#include <random>

#include <gtest/gtest.h>

namespace rehearse {
namespace redistribution_test {

using Steps = std::vector<RedistributionStep>;

constexpr MatrixShape kShape = {.rows = 24, .columns = 24, .element = 4};

Steps Path(const Layout& from, const Layout& to, const std::vector<uint32_t>& sizes) {
  const auto path = ShortestPath(from, to, kShape, sizes);
  EXPECT_TRUE(path.has_value()) << ToString(from) << " -> " << ToString(to);
  return path.value_or(Steps());
}

std::string Summary(const Steps& steps) {
  std::string text;
  for (const RedistributionStep& step : steps) {
    text += text.empty() ? "" : ", ";
    text += Name(step.move);
    for (const uint32_t axis : step.axes) text += " " + std::to_string(axis);
  }
  return text;
}

TEST(RedistributionTest, OneAxisTakesTheOneCollectiveOfTheDesignsTable) {
  const std::vector<uint32_t> sizes = {2, 3};
  EXPECT_EQ(Summary(Path({P(), B()}, {B(), B()}, sizes)), "all-reduce 0");
  EXPECT_EQ(Summary(Path({P(), B()}, {S(1), B()}, sizes)), "reduce-scatter 0");
  EXPECT_EQ(Summary(Path({S(0), B()}, {B(), B()}, sizes)), "all-gather 0");
  EXPECT_EQ(Summary(Path({S(0), B()}, {S(1), B()}, sizes)), "all-to-all 0");
  EXPECT_EQ(Summary(Path({B(), B()}, {S(1), B()}, sizes)), "slice 0");
  EXPECT_EQ(Summary(Path({S(1), P()}, {S(1), P()}, sizes)), "");
}

TEST(RedistributionTest, PartialSumsMeetBeforeAnythingIsGathered) {
  // 4D without transposition: Y is S(1) on the column axis and P on the row axis, and the target is
  // the whole of it. Summing a half and then gathering the whole costs 2·(1/2)·n/2 + (1/2)·n; the
  // other way round costs 3/2·n.
  EXPECT_EQ(Summary(Path({S(1), P()}, {B(), B()}, {2, 2})), "all-reduce 1, all-gather 0");
}

TEST(RedistributionTest, WhatIsSlicedInTheEndIsSlicedFirst) {
  EXPECT_EQ(Summary(Path({B(), P()}, {S(0), B()}, {2, 2})), "slice 0, all-reduce 1");
}

TEST(RedistributionTest, AutoDdlsSpecialCasesNeedNoAllToAll) {
  // Axes p0, p1, p2 from the outside: 2, 1, 0. (S0:p0, S1:p1, P:p2) -> (S0:p0, S1:p1·p2) -> S1 on
  // p1 only.
  const std::vector<uint32_t> sizes = {2, 3, 2};
  const Layout split = {S(1, 1), S(1, 0), S(0)};
  EXPECT_EQ(Summary(Path({P(), S(1), S(0)}, split, sizes)), "reduce-scatter 0");
  EXPECT_EQ(Summary(Path(split, {B(), S(1), S(0)}, sizes)), "all-gather 0");
}

TEST(RedistributionTest, SeveralAxesMoveInOneCollective) {
  const std::vector<uint32_t> sizes = {2, 3};
  EXPECT_EQ(Summary(Path({S(1, 1), S(1, 0)}, {B(), B()}, sizes)), "all-gather 1 0");
  EXPECT_EQ(Summary(Path({P(), P()}, {B(), B()}, sizes)), "all-reduce 1 0");
  EXPECT_EQ(Summary(Path({P(), P()}, {S(0, 1), S(0, 0)}, sizes)), "reduce-scatter 1 0");
  EXPECT_EQ(Summary(Path({S(1, 1), S(1, 0)}, {S(0, 1), S(0, 0)}, sizes)), "all-to-all 1 0");
}

TEST(RedistributionTest, TheOuterAxisOfADimensionIsNotGatheredBeforeTheInnerOne) {
  // S(1) on both, axis 1 outside; the target is S(1) on axis 0 alone. What axis 0 holds is not
  // contiguous, so the path goes through whole rows or the other dimension.
  const Steps steps = Path({S(1, 1), S(1, 0)}, {S(1), B()}, {2, 3});
  EXPECT_GE(steps.size(), 2u);
  EXPECT_EQ(steps.front().axes.back(), 0u);
}

TEST(RedistributionTest, NothingBecomesPartialAndUnequalBlocksAreRefused) {
  EXPECT_FALSE(ShortestPath({B()}, {P()}, kShape, {2}).has_value());
  EXPECT_FALSE(ShortestPath({S(0)}, {S(1)}, {.rows = 10, .columns = 7}, {5}).has_value());
}

// Every placement of three axes, with every nesting.
std::vector<Layout> AllLayouts(bool with_partial) {
  std::vector<Layout> layouts;
  const Placement placements[] = {B(), S(0), S(1), P()};
  const int kinds = with_partial ? 4 : 3;
  for (int code = 0; code < kinds * kinds * kinds; ++code) {
    const Layout plain = {placements[code % kinds], placements[code / kinds % kinds],
                          placements[code / kinds / kinds]};
    for (int order = 0; order < 27; ++order) {
      Layout layout = plain;
      uint8_t levels[] = {static_cast<uint8_t>(order % 3), static_cast<uint8_t>(order / 3 % 3),
                          static_cast<uint8_t>(order / 9)};
      for (size_t axis = 0; axis < 3; ++axis) {
        layout[axis].level = IsSplit(layout[axis]) ? levels[axis] : uint8_t{0};
      }
      bool closed = true;  // levels 0, 1, ... in each dimension
      for (const uint8_t dimension : {uint8_t{0}, uint8_t{1}}) {
        uint8_t expected = 0;
        for (const uint32_t axis : SplitAxes(layout, dimension)) {
          closed = closed && layout[axis].level == expected++;
        }
      }
      if (closed && (layouts.empty() || layouts.back() != layout)) layouts.push_back(layout);
    }
  }
  return layouts;
}

TEST(RedistributionTest, EveryLayoutOfThreeAxesReachesEveryOther) {
  const std::vector<uint32_t> sizes = {2, 3, 2};
  std::mt19937 random(1);
  const std::vector<Layout> from = AllLayouts(true);
  const std::vector<Layout> to = AllLayouts(false);
  for (int i = 0; i < 400; ++i) {
    const Layout& a = from[random() % from.size()];
    const Layout& b = to[random() % to.size()];
    const Steps steps = Path(a, b, sizes);
    // Each step changes its axes by the rule of its move, and the last one reaches the target.
    Layout now = a;
    for (const RedistributionStep& step : steps) {
      for (size_t axis = 0; axis < now.size(); ++axis) {
        const bool moves = std::find(step.axes.begin(), step.axes.end(), axis) != step.axes.end();
        if (!moves) {
          EXPECT_EQ(now[axis], step.after[axis]);
          continue;
        }
        const auto rule = Redistribute(now[axis], step.after[axis]);
        ASSERT_TRUE(rule.has_value());
        EXPECT_EQ(rule->forward, step.move) << ToString(a) << " -> " << ToString(b);
      }
      now = step.after;
    }
    EXPECT_EQ(now, b);
  }
}

TEST(RedistributionTest, AWayThroughAnyThirdLayoutIsNeverCheaper) {
  // The triangle inequality of shortest paths, over random triples.
  const std::vector<uint32_t> sizes = {2, 3, 2};
  std::mt19937 random(2);
  const std::vector<Layout> layouts = AllLayouts(false);
  const auto cost = [&](const Layout& from, const Layout& to) {
    Seconds sum;
    Layout now = from;
    for (const RedistributionStep& step : Path(from, to, sizes)) {
      sum += CostOf(step, now, kShape, sizes);
      now = step.after;
    }
    return sum.value();
  };
  for (int i = 0; i < 100; ++i) {
    const Layout& a = layouts[random() % layouts.size()];
    const Layout& b = layouts[random() % layouts.size()];
    const Layout& c = layouts[random() % layouts.size()];
    EXPECT_LE(cost(a, c), (cost(a, b) + cost(b, c)) * (1 + 1e-12) + 1e-15)
        << ToString(a) << " " << ToString(b) << " " << ToString(c);
  }
}

}  // namespace redistribution_test
}  // namespace rehearse
