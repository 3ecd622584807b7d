// What a timeline of two ranks spends its time on, by hand.
#include "sim/report/timeline_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace timeline_summary_test {

using ::testing::HasSubstr;

constexpr int64_t kMillisecond = 1'000'000'000;

Span At(uint32_t rank, uint32_t op, int64_t ready, int64_t begin, int64_t end) {
  return {rank, op, Time(ready * kMillisecond), Time(begin * kMillisecond),
          Time(end * kMillisecond)};
}

// Of rank 0, a kernel for 4 ms, then a collective from 2 ms on, which waits until 5 and ends at 7;
// rank 1 begins the kernel 1 ms later. What ends the step is a wait.
TimelineRecord TwoRanks() {
  TimelineRecord record;
  record.title = "two";
  record.provenance = Provenance::kMeasured;
  RecordedOp gemm;
  gemm.name = "void cutlass::Kernel<float, 8>(int*)";
  gemm.kind = "gemm";
  gemm.phase = Phase::kBackward;
  gemm.layer = 3;
  RecordedOp sum;
  sum.name = "all-reduce";
  sum.kind = "all-reduce";
  sum.axis = "data";
  RecordedOp wait;
  wait.name = "wait";
  wait.kind = "wait";
  RecordedRole role;
  role.name = "all";
  role.ops = {gemm, sum, wait};
  record.roles = {role};
  record.role_of_rank = {0, 0};
  RecordedStep step;
  step.timeline.ranks = 2;
  step.timeline.step = Time(10 * kMillisecond);
  step.timeline.spans = {At(0, 0, 0, 0, 4), At(0, 1, 2, 5, 7), At(0, 2, 7, 7, 10),
                         At(1, 0, 1, 1, 5), At(1, 1, 5, 5, 7), At(1, 2, 7, 7, 10)};
  record.steps = {step};
  return record;
}

TEST(TimelineSummaryTest, TimesAreMeansOverRanks) {
  const TimelineSummary summary = SummarizeTimeline(TwoRanks());
  EXPECT_DOUBLE_EQ(summary.step.value(), 0.010);
  EXPECT_DOUBLE_EQ(summary.compute.value(), 0.004);
  EXPECT_DOUBLE_EQ(summary.communication.value(), (0.005 + 0.002) / 2);
  EXPECT_DOUBLE_EQ(summary.exposed.value(), (0.003 + 0.002) / 2);
  EXPECT_DOUBLE_EQ(summary.idle.value(), (0.003 + 0.004) / 2);
  EXPECT_DOUBLE_EQ(summary.Overlap(), 1 - 2.5 / 3.5);
}

TEST(TimelineSummaryTest, KernelsCommunicatorsLayersAndPhasesHaveTheirParts) {
  const TimelineSummary summary = SummarizeTimeline(TwoRanks());
  ASSERT_EQ(summary.kernels.size(), 2u);  // waits are none
  EXPECT_EQ(summary.kernels[0].kind, "gemm");
  EXPECT_EQ(summary.kernels[0].calls, 1);
  EXPECT_DOUBLE_EQ(summary.kernels[1].seconds.value(), 0.0035);
  EXPECT_DOUBLE_EQ(summary.kernels[1].waiting.value(), 0.0015);
  EXPECT_DOUBLE_EQ(summary.kernels[1].longest.value(), 0.005);
  ASSERT_EQ(summary.communicators.size(), 1u);
  EXPECT_EQ(summary.communicators[0].name, "data");
  ASSERT_EQ(summary.layers.size(), 1u);
  EXPECT_EQ(summary.layers[0].name, "layer 3");
  ASSERT_EQ(summary.phases.size(), 1u);
  EXPECT_EQ(summary.phases[0].name, "backward");
}

TEST(TimelineSummaryTest, RanksThatShareSpansCountForAll) {
  TimelineRecord record = TwoRanks();
  record.role_of_rank = {0, 0, 0, 0};
  Timeline& timeline = record.steps.front().timeline;
  timeline.ranks = 4;
  timeline.representative = {0, 1, 1, 1};
  const TimelineSummary summary = SummarizeTimeline(record);
  EXPECT_DOUBLE_EQ(summary.communication.value(), (0.005 + 3 * 0.002) / 4);
}

TEST(TimelineSummaryTest, WhatIsNotKnownIsSaidAndIsNoNumber) {
  TimelineRecord record = TwoRanks();
  EXPECT_TRUE(ToJson(SummarizeTimeline(record))["communicators"][0].contains("waiting_seconds"));
  record.environment = {{"waiting", "unknown"}};
  const TimelineSummary summary = SummarizeTimeline(record);
  EXPECT_THAT(ToText(summary, false, 9), HasSubstr("waiting for others is not known"));
  EXPECT_FALSE(ToJson(summary)["communicators"][0].contains("waiting_seconds"));
}

TEST(TimelineSummaryTest, TextHasTheStepAndAtMostSoManyRows) {
  const std::string text = ToText(SummarizeTimeline(TwoRanks()), false, 1);
  EXPECT_THAT(text, HasSubstr("One step takes 10 ms"));
  EXPECT_THAT(text, HasSubstr("25.0 %, waiting for others included"));
  EXPECT_THAT(text, HasSubstr("cutlass::Kernel  "));
  EXPECT_THAT(text, HasSubstr("and 1 more"));
}

}  // namespace timeline_summary_test
}  // namespace rehearse
