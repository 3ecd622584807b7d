#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/report/released_by.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace release_test {

// Spans 0..4 are rank 0's ops, 5..9 rank 1's. Rank 1's gemm (5) ends last, at 12 us, and lets the
// all-reduce begin on both ranks; the all-gather has no predecessor anywhere.
TEST(ReleaseTest, TheLastToBeReadyReleasesItsGroup) {
  const TwoRankStep step;
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  EXPECT_EQ(released_by[1], 5u);
  EXPECT_EQ(released_by[6], 5u);
}

TEST(ReleaseTest, WhatNothingCameBeforeIsNotReleased) {
  const TwoRankStep step;
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  EXPECT_EQ(released_by[2], kNotReleased);
  EXPECT_EQ(released_by[7], kNotReleased);
}

TEST(ReleaseTest, ComputeAndLonelyCollectivesAreNotReleased) {
  const TwoRankStep step;
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  for (const uint32_t span : {0, 3, 4, 5, 8, 9}) EXPECT_EQ(released_by[span], kNotReleased);
}

// If both gemms end at 12 us, neither rank waits for the other.
TEST(ReleaseTest, OfTwoThatAreReadyTogetherEachReleasesItself) {
  TwoRankStep step;
  step.timeline.spans[0].end = Time(12 * kMicrosecond);
  step.timeline.spans[1].ready = Time(12 * kMicrosecond);
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  EXPECT_EQ(released_by[1], 0u);
  EXPECT_EQ(released_by[6], 5u);
}

// Rank 0 computes for 5 us and sends; rank 1 computes for 3 us and receives.
TEST(ReleaseTest, ASenderReleasesItsReceiver) {
  TwoRankStep step;
  Role sender = step.schedule.roles[0];
  sender.ops.resize(2);
  Role receiver = sender;
  sender.ops[1].work = Send{CommunicatorId(0), 1, Bytes(10)};
  receiver.ops[1].work = Receive{CommunicatorId(0), 0, Bytes(10)};
  step.schedule.roles = {sender, receiver};
  step.schedule.role_of_rank = {0, 1};
  step.timeline.spans = {SpanAt(0, 0, 0, 0, 5), SpanAt(0, 1, 5, 5, 9), SpanAt(1, 0, 0, 0, 3),
                         SpanAt(1, 1, 3, 5, 9)};
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  EXPECT_EQ(released_by[1], 0u);
  EXPECT_EQ(released_by[3], 0u);
}

TEST(ReleaseTest, ReleasingEndsWhenTheReleasedBegins) {
  const RandomStep step(16, 300, 7);
  const std::vector<uint32_t> released_by = ReleasedBy(step.schedule, step.timeline);
  size_t released = 0;
  for (size_t i = 0; i < released_by.size(); ++i) {
    if (released_by[i] == kNotReleased) continue;
    ++released;
    EXPECT_EQ(step.timeline.spans[released_by[i]].end, step.timeline.spans[i].begin);
  }
  EXPECT_GT(released, 1000u);  // about a third of 4,800
}

// Ranks 2 and 3 do as 0 and 1 do, in a group of four: what released the all-reduce of rank 2 is the
// gemm of the first rank that does as rank 1.
TEST(ReleaseTest, OfAFoldedTimelineRanksArriveAsTheirRepresentatives) {
  TwoRankStep step;
  step.schedule.communicators = {Communicator::Explicit("row", {{0, 1, 2, 3}}),
                                 Communicator::Explicit("column", {{0, 1, 2, 3}}),
                                 Communicator::Explicit("solo", {{0}, {1}, {2}, {3}})};
  step.schedule.role_of_rank = {0, 0, 0, 0};
  step.timeline.ranks = 4;
  step.timeline.representative = {0, 1, 0, 1};
  Releases releases(step.schedule, step.timeline);
  EXPECT_EQ(releases.Of({0, 1}), (OpOfRank{1, 0}));
  EXPECT_EQ(releases.Of({2, 1}), (OpOfRank{1, 0}));
  EXPECT_EQ(releases.Of({3, 1}), (OpOfRank{3, 0}));  // it was ready last itself
  EXPECT_EQ(releases.Of({2, 0}), std::nullopt);
}

}  // namespace release_test
}  // namespace rehearse
