#include "sim/report/kept_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/sample_step.h"

namespace rehearse {
namespace kept_ranks_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Eight ranks, the last two of another role; each has one span.
struct EightRanks {
  EightRanks() {
    schedule.roles.resize(2);
    schedule.role_of_rank = {0, 0, 0, 0, 0, 0, 1, 1};
    timeline.ranks = 8;
    for (uint32_t rank = 0; rank < 8; ++rank) timeline.spans.push_back(SpanAt(rank, 0, 0, 0, 1));
  }
  // Ranks 3 to 5 behave as rank 2, rank 7 as rank 6.
  void Fold() {
    timeline.representative = {0, 1, 2, 2, 2, 2, 6, 6};
    std::erase_if(timeline.spans, [&](const Span& span) {
      return timeline.representative[span.rank] != span.rank;
    });
  }

  Schedule schedule;
  Timeline timeline;
};

TEST(KeptRanksTest, OneOfEachClassIsKept) {
  EightRanks step;
  step.Fold();
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}), ElementsAre(0, 1, 2, 6));
  Timeline kept = step.timeline;
  EXPECT_THAT(KeepOnly({0, 1, 2, 6}, step.schedule, &kept), IsEmpty());
  EXPECT_EQ(HashOf(kept), HashOf(step.timeline));
}

// One of each role, then the one that stands for most.
TEST(KeptRanksTest, OfTooManyTheRolesComeFirst) {
  EightRanks step;
  step.Fold();
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}, {.ranks = 2}), ElementsAre(0, 6));
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}, {.ranks = 3}), ElementsAre(0, 2, 6));
  // No role is left without a rank: nothing would stand for its ranks.
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}, {.ranks = 1}), ElementsAre(0, 6));
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}, {.spans = 0}), ElementsAre(0, 6));
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {}, {.spans = 3}), ElementsAre(0, 2, 6));
}

TEST(KeptRanksTest, WhatIsAskedForIsKeptInAnyCase) {
  EightRanks step;
  EXPECT_THAT(RanksToKeep(step.schedule, step.timeline, {7, 4}, {.ranks = 2}),
              ElementsAre(0, 4, 6, 7));
}

TEST(KeptRanksTest, OthersOfARoleStandForWhatIsLeftOut) {
  EightRanks step;
  EXPECT_THAT(KeepOnly({2, 7}, step.schedule, &step.timeline), ElementsAre(0, 1, 3, 4, 5, 6));
  EXPECT_EQ(step.timeline.spans.size(), 2u);
  EXPECT_THAT(step.timeline.representative, ElementsAre(2, 2, 2, 2, 2, 2, 7, 7));
}

}  // namespace kept_ranks_test
}  // namespace rehearse
