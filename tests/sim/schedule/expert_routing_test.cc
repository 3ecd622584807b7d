#include "sim/schedule/expert_routing.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace rehearse {
namespace expert_routing_test {

std::vector<double> Attributes(uint32_t experts, uint32_t per_token) {
  std::vector<double> attributes(kRoutingAttributes);
  attributes[kRoutingExperts] = experts;
  attributes[kRoutingPerToken] = per_token;
  attributes[kRoutingGroups] = 1;
  attributes[kRoutingLimitedGroups] = 1;
  attributes[kRoutingImbalance] = 1;
  return attributes;
}

TEST(ExpertRouting, EveryTokenAsksForDifferentExperts) {
  for (const double imbalance : {1.0, 1.7, 3.0}) {
    std::vector<double> attributes = Attributes(12, 4);
    attributes[kRoutingImbalance] = imbalance;
    const ExpertRouting routing = MakeRouting(attributes);
    for (uint64_t token = 0; token < routing.period; ++token) {
      const auto begin = routing.asked.begin() + static_cast<int64_t>(token * 4);
      EXPECT_EQ(std::set<int32_t>(begin, begin + 4).size(), 4u);
    }
  }
}

// 12 experts, 4 per token: in 3 tokens each expert has one choice.
TEST(ExpertRouting, BalancedChoicesComeOutEvenInTheShortestRun) {
  const ExpertRouting routing = MakeRouting(Attributes(12, 4));
  EXPECT_EQ(routing.period, 3u);
  EXPECT_TRUE(routing.IsEven());
  EXPECT_EQ(routing.Kept(), 12u);
  EXPECT_EQ(KeptRows(routing, 6), 24u);
}

// 8 experts in 4 groups, two choices of a token in two groups: after two tokens each group has had
// one, after four each expert.
TEST(ExpertRouting, GroupsComeOutEvenInTheShortestRunToo) {
  std::vector<double> attributes = Attributes(8, 2);
  attributes[kRoutingGroups] = 4;
  attributes[kRoutingLimitedGroups] = 2;
  const ExpertRouting routing = MakeRouting(attributes);
  EXPECT_EQ(routing.period, 4u);
  EXPECT_TRUE(routing.IsEven());
}

// A run of 64 tokens, so an equal share of 128 choices over 8 experts is 16.
TEST(ExpertRouting, TheBusiestExpertHasSoManyTimesAnEqualShare) {
  std::vector<double> attributes = Attributes(8, 2);
  attributes[kRoutingImbalance] = 2;
  const ExpertRouting routing = MakeRouting(attributes);
  EXPECT_EQ(routing.period, 64u);
  EXPECT_NEAR(static_cast<double>(*std::max_element(routing.loads.begin(), routing.loads.end())),
              32, 1);
  EXPECT_EQ(routing.Kept(), 128u);
}

TEST(ExpertRouting, AnotherSeedMakesOtherExpertsBusyAndNoneBusier) {
  std::vector<double> attributes = Attributes(8, 2);
  attributes[kRoutingImbalance] = 2;
  std::vector<uint64_t> one = MakeRouting(attributes).loads;
  attributes[kRoutingSeed] = 1;
  std::vector<uint64_t> other = MakeRouting(attributes).loads;
  EXPECT_NE(one, other);
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  EXPECT_EQ(one, other);
}

// 64 experts on 8 ranks: the same loads, and the busiest rank has little more than the least busy
// one, where a drawn order leaves one with half as much again as an equal share.
TEST(ExpertRouting, PlacedExpertsGiveEachRankAsMuchToDo) {
  const auto of_ranks = [](const std::vector<uint64_t>& loads) {
    std::vector<uint64_t> sums(8);
    for (size_t expert = 0; expert < loads.size(); ++expert) sums[expert / 8] += loads[expert];
    const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
    return static_cast<double>(*most) / static_cast<double>(*least);
  };
  std::vector<double> attributes = Attributes(64, 8);
  attributes[kRoutingImbalance] = 2.5;
  std::vector<uint64_t> drawn = MakeRouting(attributes).loads;
  attributes.push_back(8);
  std::vector<uint64_t> placed = MakeRouting(attributes).loads;
  EXPECT_GT(of_ranks(drawn), 1.3);
  EXPECT_LT(of_ranks(placed), 1.03);
  std::sort(drawn.begin(), drawn.end());
  std::sort(placed.begin(), placed.end());
  EXPECT_EQ(drawn, placed);
}

// Groups stay where they are: each is placed on ranks of its own.
TEST(ExpertRouting, PlacedExpertsStayInTheirGroups) {
  std::vector<double> attributes = Attributes(32, 4);
  attributes[kRoutingGroups] = 4;
  attributes[kRoutingLimitedGroups] = 2;
  attributes[kRoutingImbalance] = 2;
  std::vector<uint64_t> drawn = MakeRouting(attributes).loads;
  attributes.push_back(8);
  std::vector<uint64_t> placed = MakeRouting(attributes).loads;
  for (auto group = 0; group < 32; group += 8) {
    std::sort(drawn.begin() + group, drawn.begin() + group + 8);
    std::sort(placed.begin() + group, placed.begin() + group + 8);
  }
  EXPECT_EQ(drawn, placed);
}

TEST(ExpertRouting, ExpertsDropWhatComesAfterTheyAreFull) {
  std::vector<double> attributes = Attributes(8, 2);
  attributes[kRoutingImbalance] = 2;
  attributes[kRoutingCapacity] = 1.25;  // 20 of a run
  const ExpertRouting routing = MakeRouting(attributes);
  std::vector<uint64_t> taken(8);
  for (size_t i = 0; i < routing.choices.size(); ++i) {
    const auto asked = static_cast<size_t>(routing.asked[i]);
    if (routing.choices[i] == ExpertRouting::kDropped) {
      EXPECT_EQ(taken[asked], 20u);
    } else {
      ++taken[asked];
    }
  }
  EXPECT_EQ(taken, routing.loads);
  EXPECT_EQ(*std::max_element(taken.begin(), taken.end()), 20u);
}

TEST(ExpertRouting, RoomForMoreThanThereIsDropsNothing) {
  std::vector<double> attributes = Attributes(8, 2);
  attributes[kRoutingCapacity] = 1;
  EXPECT_EQ(MakeRouting(attributes).Kept(), 128u);
}

// 32 experts in 8 groups: a token's 8 are two each of four.
TEST(ExpertRouting, ChoicesOfATokenLieInSoManyGroups) {
  std::vector<double> attributes = Attributes(32, 8);
  attributes[kRoutingGroups] = 8;
  attributes[kRoutingLimitedGroups] = 4;
  const ExpertRouting routing = MakeRouting(attributes);
  EXPECT_TRUE(routing.IsEven());
  for (uint64_t token = 0; token < routing.period; ++token) {
    std::set<int32_t> groups;
    for (size_t i = 0; i < 8; ++i) groups.insert(routing.asked[token * 8 + i] / 4);
    EXPECT_EQ(groups.size(), 4u);
  }
}

}  // namespace expert_routing_test
}  // namespace rehearse
