#include "workloads/planner/stage_sizes.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace stage_sizes_test {

using ::testing::ElementsAre;

// The heaviest run, and the sum of squares.
std::pair<double, double> CostOf(const std::vector<double>& weights,
                                 const std::vector<uint32_t>& sizes) {
  std::pair<double, double> cost;
  size_t next = 0;
  for (const uint32_t size : sizes) {
    double sum = 0;
    for (uint32_t i = 0; i < size; ++i) sum += weights[next++];
    cost.first = std::max(cost.first, sum);
    cost.second += sum * sum;
  }
  return cost;
}

// Of all cuts, tried one by one.
std::pair<double, double> LeastCost(const std::vector<double>& weights, uint32_t runs) {
  std::pair<double, double> least = {1e300, 1e300};
  std::vector<uint32_t> sizes(runs, 1);
  const auto place = [&](auto&& again, uint32_t run, size_t left) -> void {
    if (run + 1 == runs) {
      sizes[run] = static_cast<uint32_t>(left);
      least = std::min(least, CostOf(weights, sizes));
      return;
    }
    for (size_t size = 1; size + (runs - run - 1) <= left; ++size) {
      sizes[run] = static_cast<uint32_t>(size);
      again(again, run + 1, left - size);
    }
  };
  place(place, 0, weights.size());
  return least;
}

TEST(EvenRunsTest, AreAsGoodAsAnyCut) {
  std::mt19937_64 dice(1);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<double> weights(1 + dice() % 10);
    // Whole numbers, so that equal sums are equal; some zeros, and now and then a long end.
    for (double& weight : weights) weight = static_cast<double>(dice() % 7);
    if (dice() % 3 == 0) weights.back() = static_cast<double>(dice() % 30);
    const auto runs = static_cast<uint32_t>(1 + dice() % weights.size());
    const std::vector<uint32_t> sizes = EvenRuns(weights, runs);
    ASSERT_EQ(sizes.size(), runs);
    ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), weights.size());
    ASSERT_EQ(std::count(sizes.begin(), sizes.end(), 0u), 0);
    ASSERT_EQ(CostOf(weights, sizes), LeastCost(weights, runs));
  }
}

// Filled from the front, it would be 3, 3, 3, 1, 1, 1.
TEST(EvenRunsTest, ALongOutputLayerLeavesNoStageAlmostEmpty) {
  std::vector<double> weights(11, 1);
  weights.push_back(3);
  EXPECT_THAT(EvenRuns(weights, 6), ElementsAre(3, 2, 2, 2, 2, 1));
}

}  // namespace stage_sizes_test
}  // namespace rehearse
