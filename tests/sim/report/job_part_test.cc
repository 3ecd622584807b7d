#include "sim/report/job_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/sample_step.h"

namespace rehearse {
namespace job_part_test {

using ::testing::ElementsAre;

// Job "b" is on devices 2 and 0, from 100 on. Device 0 ends its first step at 130, device 2 at 140,
// and both end the second at 190: of 90 in total, the first step takes 40, the second 50.
TEST(JobPartTest, APartBeginsWithItsJobOnRanksOfItsOwn) {
  const Job job = {"b", JobOfTwoRanks(), {2, 0}, ToSeconds(Time(100)), 2};
  Timeline joint;
  joint.ranks = 3;
  joint.step = Time(500);
  joint.spans = {
      SpanAt(0, 0, 0, 0, 100),     SpanAt(0, 1, 100, 100, 130), SpanAt(0, 2, 100, 110, 120),
      SpanAt(0, 3, 130, 130, 180), SpanAt(0, 4, 140, 150, 190), SpanAt(1, 0, 0, 0, 500),
      SpanAt(2, 0, 0, 0, 100),     SpanAt(2, 1, 100, 100, 140), SpanAt(2, 2, 110, 110, 120),
      SpanAt(2, 3, 140, 140, 180), SpanAt(2, 4, 150, 150, 190)};
  const JobPart part = CutOut(job, joint);
  EXPECT_EQ(part.timeline.ranks, 2u);
  EXPECT_EQ(part.timeline.step, Time(90));
  ASSERT_EQ(part.timeline.spans.size(), 8u);
  EXPECT_EQ(part.timeline.spans[0].rank, 0u);  // device 2
  EXPECT_EQ(part.timeline.spans[0].op, 0u);
  EXPECT_EQ(part.timeline.spans[0].end, Time(40));
  EXPECT_EQ(part.timeline.spans[4].rank, 1u);  // device 0
  EXPECT_EQ(part.timeline.spans[4].end, Time(30));
  EXPECT_THAT(part.steps, ElementsAre(ToSeconds(Time(40)), ToSeconds(Time(50))));

  // Two products of 1e6 flops per rank in 90 ps on two devices of 1e18 flop/s: the mean step takes
  // 45 ps and does 2e6 flops where 9e7 were possible.
  const Result result = SummarizeSteps(job, part, FlopsPerSecond(1e18));
  EXPECT_EQ(result.step, ToSeconds(Time(90)) / 2);
  EXPECT_DOUBLE_EQ(result.model_flops_utilization, 2e6 / 9e7);
  EXPECT_DOUBLE_EQ(result.axes[0].operations, 1);
  EXPECT_DOUBLE_EQ(result.axes[0].bytes.value(), 1000);
}

TEST(JobPartTest, RanksThatAreAlikeStayAlike) {
  // Devices 1 and 3 have the job, and 1 stands for both; in the job's order 3 comes first.
  const Job job = {"b", JobOfTwoRanks(), {3, 1}, Seconds(0), 1};
  Timeline joint;
  joint.ranks = 4;
  joint.representative = {0, 1, 0, 1};
  joint.spans = {SpanAt(1, 0, 0, 0, 10), SpanAt(1, 1, 0, 0, 20)};
  const JobPart part = CutOut(job, joint);
  EXPECT_THAT(part.timeline.representative, ElementsAre(1, 1));
  ASSERT_EQ(part.timeline.spans.size(), 2u);
  EXPECT_EQ(part.timeline.spans[0].rank, 1u);
  EXPECT_EQ(Unfolded(part.timeline).spans.size(), 4u);
}

}  // namespace job_part_test
}  // namespace rehearse
