#include "workloads/planner/actions.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "workloads/planner/pipeline_orders.h"

namespace rehearse {
namespace actions_test {

using Kind = ActionKind;

std::string MistakeIn(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches) {
  try {
    CheckActions(actions, stages, micro_batches);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ActionsTest, GeneratorsMakeListsThatCanBeDone) {
  for (const auto generate : {OneAfterAnother, GPipe, OneForwardOneBackward, ZeroBubbleH1}) {
    for (const uint32_t stages : {1u, 2u, 3u, 4u, 8u}) {
      for (const uint32_t micro_batches : {1u, 2u, 3u, 8u, 19u}) {
        EXPECT_EQ(MistakeIn(generate(stages, micro_batches), stages, micro_batches), "")
            << stages << " stages, " << micro_batches << " micro-batches";
      }
    }
  }
}

// How many micro-batches a stage has begun but not ended, at most.
uint32_t MostInFlight(const std::vector<Action>& actions, uint32_t stage) {
  uint32_t now = 0;
  uint32_t most = 0;
  for (const Action& action : OfStage(actions, stage)) {
    if (action.kind == Kind::kForward) most = std::max(most, ++now);
    if (action.kind == Kind::kBackward || action.kind == Kind::kWeightGradient) --now;
  }
  return most;
}

TEST(ActionsTest, OneForwardOneBackwardKeepsAsManyMicroBatchesAsStagesAreLeft) {
  // Stage s of p runs p-s-1 ahead and has one more under way.
  const auto actions = OneForwardOneBackward(4, 16);
  for (uint32_t stage = 0; stage < 4; ++stage) EXPECT_EQ(MostInFlight(actions, stage), 4 - stage);
  for (uint32_t stage = 0; stage < 4; ++stage) EXPECT_EQ(MostInFlight(GPipe(4, 16), stage), 16u);
}

TEST(ActionsTest, ZeroBubbleKeepsAsManyOnEveryStage) {
  // p-s-1 ahead, one under way, s that wait for their weight gradients: p.
  const auto actions = ZeroBubbleH1(4, 16);
  for (uint32_t stage = 0; stage < 4; ++stage) EXPECT_EQ(MostInFlight(actions, stage), 4u);
}

TEST(ActionsTest, WhatIsMissingIsNamedWithWhatNeedsIt) {
  auto actions = OneAfterAnother(1, 2);
  actions.erase(actions.begin());
  EXPECT_EQ(MistakeIn(actions, 1, 2),
            "action 0 (backward of micro-batch 0 on stage 0) needs the forward of micro-batch 0 on "
            "stage 0, which the list does not have");
  actions = ZeroBubbleH1(1, 1);
  std::erase(actions, Action{0, 0, Kind::kWeightGradient});
  EXPECT_EQ(MistakeIn(actions, 1, 1),
            "action 1 (input gradient of micro-batch 0 on stage 0) needs a weight gradient of "
            "micro-batch 0 on stage 0 after it, which the list does not have");
  actions = OneAfterAnother(1, 1);
  actions.pop_back();
  EXPECT_EQ(MistakeIn(actions, 1, 1), "the list has no update on stage 0");
}

TEST(ActionsTest, WhatComesTooEarlyIsNamedWithWhatItNeeds) {
  auto actions = OneAfterAnother(1, 2);
  std::swap(actions[2], actions[3]);
  EXPECT_EQ(MistakeIn(actions, 1, 2),
            "action 2 (backward of micro-batch 1 on stage 0) comes before action 3 (forward of "
            "micro-batch 1 on stage 0), which it needs");
  actions = OneAfterAnother(1, 2);
  std::swap(actions[3], actions[4]);
  EXPECT_EQ(MistakeIn(actions, 1, 2),
            "action 3 (synchronise on stage 0) comes before action 4 (backward of micro-batch 1 on "
            "stage 0), which it needs");
}

TEST(ActionsTest, NothingIsDoneTwice) {
  auto actions = OneAfterAnother(1, 1);
  actions.insert(actions.begin(), actions.front());
  EXPECT_EQ(MistakeIn(actions, 1, 1),
            "action 1 (forward of micro-batch 0 on stage 0) comes once more: action 0 (forward of "
            "micro-batch 0 on stage 0) is the same");
  actions = OneAfterAnother(1, 1);
  actions.insert(actions.begin() + 2, {0, 0, Kind::kInputGradient});
  EXPECT_EQ(
      MistakeIn(actions, 1, 1),
      "action 1 (backward of micro-batch 0 on stage 0) makes the gradients of action 2 (input "
      "gradient of micro-batch 0 on stage 0) again");
}

TEST(ActionsTest, StagesTakeMicroBatchesInTheOrderInWhichTheyAreHandedOn) {
  // The second stage's list is 0: forward 1, forward 0 where the first sends 0 before 1.
  auto actions = GPipe(2, 2);
  std::swap(actions[6], actions[7]);
  EXPECT_EQ(
      MistakeIn(actions, 2, 2),
      "rank 1 of the pipeline takes micro-batches in another order than rank 0 passes them on: "
      "action 6 (forward of micro-batch 1 on stage 1) meets action 0 (forward of micro-batch "
      "0 on stage 0)");
}

TEST(ActionsTest, StagesThatWaitForEachOtherAreNamed) {
  // The first goes back with micro-batch 0 before it takes 1; the second needs both first.
  std::vector<Action> actions = OfStage(OneAfterAnother(2, 2), 0);
  for (const Action& action : OfStage(GPipe(2, 2), 1)) actions.push_back(action);
  EXPECT_EQ(MistakeIn(actions, 2, 2),
            "ranks 0, 1 of the pipeline wait for each other: action 1 (backward of micro-batch 0 "
            "on stage 0) "
            "needs action 8 (backward of micro-batch 0 on stage 1), which comes after action 7 "
            "(forward of micro-batch 1 on stage 1), and that needs action 2 (forward of "
            "micro-batch 1 on stage 0)");
}

TEST(ActionsTest, StagesAndMicroBatchesThatAreNotThereAreNamed) {
  EXPECT_EQ(MistakeIn({{2, 0, Kind::kForward}}, 2, 1),
            "action 0 (forward of micro-batch 0 on stage 2): there are 2 stages");
  EXPECT_EQ(MistakeIn({{0, 3, Kind::kForward}}, 2, 3),
            "action 0 (forward of micro-batch 3 on stage 0): there are 3 micro-batches");
}

}  // namespace actions_test
}  // namespace rehearse
