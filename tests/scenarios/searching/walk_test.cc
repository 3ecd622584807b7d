#include "scenarios/searching/walk.h"

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

namespace rehearse {
namespace walk_test {

// This many axes with this many choices each.
SearchSpace Cube(size_t axes, size_t choices) {
  SearchSpace space;
  space.axes.resize(axes);
  for (SpaceAxis& axis : space.axes) axis.choices.resize(choices);
  return space;
}

// A bowl around (3, 3, ...), down whose walls descent reaches the bottom axis by axis.
double Bowl(const SpacePoint& point) {
  double sum = 1;
  for (const uint32_t choice : point) sum += std::pow(static_cast<double>(choice) - 3.0, 2);
  return sum;
}

struct Seen {
  std::set<SpacePoint> points;
  double least = 1e300;
};

Seen WalkThrough(const SearchSpace& space, const WalkOptions& options, unsigned threads,
                 const std::function<std::optional<double>(const SpacePoint&)>& cost) {
  Seen seen;
  std::mutex mutex;
  Walk(
      space, options, threads,
      [&](const SpacePoint& point, uint32_t /*start*/) {
        const std::optional<double> value = cost(point);
        const std::lock_guard lock(mutex);
        seen.points.insert(point);
        if (value) seen.least = std::min(seen.least, *value);
        return value;
      },
      [] { return false; });
  return seen;
}

TEST(WalkTest, ExhaustiveSeesEveryPoint) {
  EXPECT_EQ(WalkThrough(Cube(3, 5), {}, 2, Bowl).points.size(), 125u);
}

TEST(WalkTest, OthersSeeNoMoreThanTheyMay) {
  for (const WalkMethod method : {WalkMethod::kRandom, WalkMethod::kDescent,
                                  WalkMethod::kMetropolis, WalkMethod::kAnnealing}) {
    const Seen seen =
        WalkThrough(Cube(4, 10), {.method = method, .evaluations = 300, .starts = 4}, 2, Bowl);
    EXPECT_LE(seen.points.size(), 300u) << Name(method);
    EXPECT_GT(seen.points.size(), 100u) << Name(method);
  }
}

TEST(WalkTest, TheSameSeedSeesTheSamePointsWithAnyNumberOfThreads) {
  for (const WalkMethod method : {WalkMethod::kRandom, WalkMethod::kDescent,
                                  WalkMethod::kMetropolis, WalkMethod::kAnnealing}) {
    WalkOptions options{.method = method, .evaluations = 200, .starts = 5, .seed = 7};
    const Seen alone = WalkThrough(Cube(4, 9), options, 1, Bowl);
    EXPECT_EQ(alone.points, WalkThrough(Cube(4, 9), options, 4, Bowl).points);
    options.seed = 8;
    EXPECT_NE(alone.points, WalkThrough(Cube(4, 9), options, 1, Bowl).points);
  }
}

// 10^6 points. Each axis has 10 choices, so one round of descent looks at 6 · 9 points.
TEST(WalkTest, DescentReachesTheBottomOfABowlInATinyPartOfTheLooks) {
  const Seen seen = WalkThrough(
      Cube(6, 10), {.method = WalkMethod::kDescent, .evaluations = 200, .starts = 1}, 1, Bowl);
  EXPECT_EQ(seen.least, 1);
  EXPECT_LE(seen.points.size(), 200u);
}

// Each start has one of the first that it may begin with, and the rest begin anywhere.
TEST(WalkTest, BeginsWithWhatIsKnownToBeGood) {
  const std::vector<SpacePoint> from = {{9, 9, 9}, {1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  std::mutex mutex;
  std::map<uint32_t, SpacePoint> first;
  Walk(
      Cube(3, 10), {.method = WalkMethod::kDescent, .evaluations = 60, .starts = 2, .seed = 3}, 2,
      [&](const SpacePoint& point, uint32_t start) {
        const std::lock_guard lock(mutex);
        first.emplace(start, point);
        return Bowl(point);
      },
      [] { return false; }, {},
      [](const SpacePoint& point) {
        return point != SpacePoint{9, 9, 9};
      },
      from);
  EXPECT_EQ(first, (std::map<uint32_t, SpacePoint>{{0, {1, 2, 3}}, {1, {4, 5, 6}}}));
}

TEST(WalkTest, AnnealingLeavesAValleyThatDescentStaysIn) {
  // Each point of the diagonal is better than all that differ from it in one axis: only two steps,
  // the first of them to a worse point, lead from one to a better one.
  const auto cost = [](const SpacePoint& point) -> std::optional<double> {
    const double least = std::min(point[0], point[1]);
    return (point[0] == point[1] ? 1.0 : 1.1) + 0.01 * (29 - least);
  };
  const SearchSpace space = Cube(2, 30);
  size_t good = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Seen seen = WalkThrough(space,
                                  {.method = WalkMethod::kAnnealing,
                                   .evaluations = 300,
                                   .starts = 1,
                                   .temperature = 0.2,
                                   .seed = seed},
                                  1, cost);
    if (seen.least <= 1.05) ++good;  // one of the best six of 30 on the diagonal
  }
  EXPECT_GE(good, 18u);
}

TEST(WalkTest, WhatIsImpossibleIsWalkedRound) {
  const auto cost = [](const SpacePoint& point) -> std::optional<double> {
    if ((point[0] + point[1]) % 3 == 1) return std::nullopt;
    return Bowl(point);
  };
  const Seen seen = WalkThrough(
      Cube(3, 10), {.method = WalkMethod::kDescent, .evaluations = 400, .starts = 4}, 2, cost);
  EXPECT_EQ(seen.least, 1);  // (3, 3, 3) is possible
}

TEST(WalkTest, ASpaceWithoutAPossiblePointEnds) {
  for (const WalkMethod method : {WalkMethod::kDescent, WalkMethod::kMetropolis}) {
    const Seen seen = WalkThrough(Cube(2, 3), {.method = method, .evaluations = 1000}, 1,
                                  [](const SpacePoint&) { return std::nullopt; });
    EXPECT_EQ(seen.points.size(), 9u);
  }
}

}  // namespace walk_test
}  // namespace rehearse
