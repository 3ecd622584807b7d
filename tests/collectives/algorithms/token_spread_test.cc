// How many ranks and machines a token goes to, against every order in which it may prefer experts.
#include "collectives/algorithms/token_spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace token_spread_test {

// The mean over all orders of the experts: the first k of the groups whose best come first.
TokenSpread OverAllOrders(const TokenRouting& routing) {
  std::vector<uint32_t> order(routing.experts);
  std::iota(order.begin(), order.end(), 0u);
  double orders = 0;
  TokenSpread sum;
  do {
    std::set<uint32_t> groups;
    for (const uint32_t expert : order) {
      if (groups.size() == routing.limited_groups) break;
      groups.insert(expert / (routing.experts / routing.groups));
    }
    std::set<uint32_t> ranks;
    std::set<uint32_t> machines;
    uint32_t chosen = 0;
    for (const uint32_t expert : order) {
      if (chosen == routing.top_k) break;
      if (groups.count(expert / (routing.experts / routing.groups)) == 0) continue;
      ranks.insert(expert / (routing.experts / routing.ranks));
      machines.insert(expert / (routing.experts / routing.machines));
      ++chosen;
    }
    sum.ranks += static_cast<double>(ranks.size());
    sum.machines += static_cast<double>(machines.size());
    orders += 1;
  } while (std::next_permutation(order.begin(), order.end()));
  return {sum.ranks / orders, sum.machines / orders};
}

TEST(TokenSpreadTest, IsTheMeanOverAllOrdersOfExperts) {
  for (const TokenRouting& routing : {TokenRouting{8, 2, 4, 2, 1, 1},
                                      {8, 3, 4, 2, 4, 2},
                                      {8, 3, 8, 4, 4, 2},
                                      {8, 4, 2, 2, 4, 2},
                                      {8, 4, 4, 1, 4, 3},
                                      {8, 3, 8, 2, 8, 5},
                                      {9, 4, 9, 3, 3, 2},
                                      {8, 4, 8, 8, 2, 1}}) {
    SCOPED_TRACE(fmt::format("{} experts, {} a token, {} ranks, {} machines, {} of {} groups",
                             routing.experts, routing.top_k, routing.ranks, routing.machines,
                             routing.limited_groups, routing.groups));
    const TokenSpread all = OverAllOrders(routing);
    const TokenSpread spread = SpreadOf(routing);
    EXPECT_NEAR(spread.ranks, all.ranks, 1e-12);
    EXPECT_NEAR(spread.machines, all.machines, 1e-12);
  }
}

TEST(TokenSpreadTest, WithoutALimitAMachineIsMissedAsOftenAsItsExpertsAreNotDrawn) {
  // 256 experts on 4 machines, 8 drawn: a machine is missed with (192 over 8) / (256 over 8).
  double missed = 1;
  for (uint32_t i = 0; i < 8; ++i) missed *= (192.0 - i) / (256 - i);
  const TokenSpread spread = SpreadOf({256, 8, 32, 4, 4, 4});
  EXPECT_NEAR(spread.machines, 4 * (1 - missed), 1e-12);
}

TEST(TokenSpreadTest, ALimitHoldsMachinesAndLeavesRanks) {
  // DeepSeek-V3: 8 of 256 experts in 4 of 8 machines of 8: nearly always in all 4.
  const TokenSpread spread = SpreadOf({256, 8, 64, 8, 8, 4});
  EXPECT_GT(spread.machines, 3.9);
  EXPECT_LE(spread.machines, 4);
  EXPECT_GT(spread.ranks, SpreadOf({256, 8, 32, 4, 4, 4}).ranks - 0.2);
}

TEST(TokenSpreadTest, WhatDoesNotFitIsRefused) {
  for (const TokenRouting& routing : {TokenRouting{8, 2, 3, 1, 1, 1},
                                      {8, 2, 4, 3, 1, 1},
                                      {8, 2, 4, 2, 3, 1},
                                      {8, 2, 4, 2, 4, 5},
                                      {8, 9, 4, 2, 1, 1},
                                      {8, 0, 4, 2, 1, 1},
                                      {8, 2, 4, 2, 4, 0},
                                      {8, 5, 4, 2, 4, 2},
                                      {12, 2, 6, 2, 4, 2}}) {
    EXPECT_THROW(SpreadOf(routing), Error) << routing.experts << " " << routing.ranks;
  }
}

TEST(TokenSpreadTest, ATokenWithOneExpertGoesToOneRank) {
  const TokenSpread spread = SpreadOf({8, 1, 4, 2, 1, 1});
  EXPECT_DOUBLE_EQ(spread.ranks, 1);
  EXPECT_DOUBLE_EQ(spread.machines, 1);
}

TEST(TokenSpreadTest, ATokenIn8BitsHasAScaleForEach128Elements) {
  EXPECT_EQ(TokenBytes(7168, DType::kFp8), Bytes(7168 + 56 * 4));
  EXPECT_EQ(TokenBytes(100, DType::kFp8), Bytes(104));
  EXPECT_EQ(TokenBytes(7168, DType::kBf16), Bytes(2 * 7168));
}

// Tokens that draw experts by unequal weights, against the means that follow from how often each
// was drawn.
TEST(TokenSpreadTest, SkewedRoutingIsThatOfTokensThatAreDrawn) {
  struct Case {
    TokenRouting routing;
    double steepness;  // the weight of expert i is 1 / (1 + steepness * i), in a drawn order
  };
  for (const Case& own : {Case{{64, 8, 8, 4, 1, 1}, 0.05}, Case{{64, 8, 8, 4, 1, 1}, 0.3},
                          Case{{128, 6, 32, 4, 1, 1}, 0.1}, Case{{256, 8, 64, 8, 8, 4}, 0.03}}) {
    TokenRouting routing = own.routing;
    SCOPED_TRACE(fmt::format("{} experts, {} a token, steepness {}", routing.experts, routing.top_k,
                             own.steepness));
    std::mt19937 random(7);
    std::vector<double> weights(routing.experts);
    for (uint32_t i = 0; i < routing.experts; ++i) weights[i] = 1 / (1 + own.steepness * i);
    std::shuffle(weights.begin(), weights.end(), random);
    std::uniform_real_distribution<double> uniform(1e-12, 1);
    constexpr int kTokens = 10'000;
    routing.wanted.assign(routing.experts, 0);
    TokenSpread sum;
    std::vector<std::pair<double, uint32_t>> order(routing.experts);
    for (int token = 0; token < kTokens; ++token) {
      // The smallest of exponential times comes first with a chance as its weight.
      for (uint32_t i = 0; i < routing.experts; ++i)
        order[i] = {-std::log(uniform(random)) / weights[i], i};
      std::sort(order.begin(), order.end());
      std::set<uint32_t> groups;
      for (const auto& [time, expert] : order) {
        if (groups.size() == routing.limited_groups) break;
        groups.insert(expert / (routing.experts / routing.groups));
      }
      std::set<uint32_t> ranks;
      std::set<uint32_t> machines;
      uint32_t chosen = 0;
      for (const auto& [time, expert] : order) {
        if (chosen == routing.top_k) break;
        if (groups.count(expert / (routing.experts / routing.groups)) == 0) continue;
        ranks.insert(expert / (routing.experts / routing.ranks));
        machines.insert(expert / (routing.experts / routing.machines));
        routing.wanted[expert] += 1.0 / kTokens;
        ++chosen;
      }
      sum.ranks += static_cast<double>(ranks.size()) / kTokens;
      sum.machines += static_cast<double>(machines.size()) / kTokens;
    }
    const TokenSpread spread = SpreadOf(routing);
    EXPECT_NEAR(spread.ranks / sum.ranks, 1, 0.01);
    EXPECT_NEAR(spread.machines / sum.machines, 1, 0.01);
  }
}

// Two of the three experts of every token are those of the first rank; the third is on another.
TEST(TokenSpreadTest, WhatEveryTokenWantsDrawsNoFurtherRank) {
  TokenRouting routing{8, 3, 4, 1, 1, 1};
  const double uniform = SpreadOf(routing).ranks;
  EXPECT_NEAR(uniform, 4 * (1 - 20.0 / 56), 1e-9);
  routing.wanted.assign(8, 1.0 / 6);
  routing.wanted[0] = routing.wanted[1] = 1;
  EXPECT_NEAR(SpreadOf(routing).ranks, 2, 0.02);
}

// Wanted alike, whether it is said or not.
TEST(TokenSpreadTest, EqualChancesAreUniformRouting) {
  TokenRouting routing{64, 6, 16, 4, 8, 3};
  const TokenSpread uniform = SpreadOf(routing);
  routing.wanted.assign(64, 6.0 / 64);
  EXPECT_NEAR(SpreadOf(routing).ranks, uniform.ranks, 1e-9);
  EXPECT_NEAR(SpreadOf(routing).machines, uniform.machines, 1e-9);
}

}  // namespace token_spread_test
}  // namespace rehearse
