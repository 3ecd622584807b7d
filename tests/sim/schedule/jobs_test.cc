#include "sim/schedule/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/backends/schedule_hash.h"
#include "sim/base/error.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace jobs_test {

using ::testing::ElementsAre;

std::vector<uint32_t> AfterOf(const Schedule& schedule, uint32_t device, uint32_t op) {
  return schedule.roles[schedule.role_of_rank[device]].AfterAt(op);
}

TEST(JobsTest, AJobByItselfOnAllDevicesStaysAsItIs) {
  const std::vector<Job> jobs = {{"a", JobOfTwoRanks(), {0, 1}, Seconds(0), 1}};
  const Schedule joint = Join(jobs, 2);
  EXPECT_EQ(HashOf(joint), HashOf(JobOfTwoRanks()));
  EXPECT_EQ(joint.communicators[0].name(), "all");
  // Anything else makes it different: another order, a spare device, a late start, a second step.
  EXPECT_FALSE(IsWhole({{"a", JobOfTwoRanks(), {1, 0}, Seconds(0), 1}}, 2));
  EXPECT_FALSE(IsWhole({{"a", JobOfTwoRanks(), {0, 1}, Seconds(0), 1}}, 3));
  EXPECT_FALSE(IsWhole({{"a", JobOfTwoRanks(), {0, 1}, Seconds(1), 1}}, 2));
  EXPECT_FALSE(IsWhole({{"a", JobOfTwoRanks(), {0, 1}, Seconds(0), 2}}, 2));
}

TEST(JobsTest, CommunicatorsNameTheDevicesAndSpareOnesDoNothing) {
  const Schedule joint = Join({{"a", JobOfTwoRanks(), {4, 1}, Seconds(0), 1},
                               {"b", JobOfTwoRanks(), {0, 3}, Seconds(0), 1}},
                              5);
  CheckSchedule(joint);
  CheckBuffers(joint);
  ASSERT_EQ(joint.communicators.size(), 2u);
  EXPECT_EQ(joint.communicators[0].name(), "a/all");
  EXPECT_EQ(joint.communicators[1].name(), "b/all");
  EXPECT_EQ(joint.communicators[0].Rank(0, 0), 4u);
  EXPECT_EQ(joint.communicators[0].Rank(0, 1), 1u);
  EXPECT_EQ(joint.communicators[1].Rank(0, 1), 3u);
  EXPECT_FALSE(joint.communicators[0].PositionOf(0).has_value());
  EXPECT_THAT(joint.role_of_rank, ElementsAre(1, 0, 2, 1, 0));
  EXPECT_TRUE(joint.roles[2].ops.empty());
  EXPECT_EQ(CommunicatorOf(joint.roles[1].ops[1].work), CommunicatorId(1));
  EXPECT_EQ(joint.model_flops, Flops(4e6));
  EXPECT_EQ(joint.tokens, 10);
}

// Op 0 waits; 1 and 2 are the first step, 3 and 4 the second, 5 and 6 the third. Product and sum of
// a step do not wait for each other, but each waits for both of the step before; a stream needs no
// `after` to keep its own order.
TEST(JobsTest, EverythingWaitsForTheStartAndAStepForAllOfTheOneBefore) {
  const Job job = {"a", JobOfTwoRanks(), {0, 1}, Seconds(0.5), 3};
  const Schedule joint = Join({job}, 2);
  CheckSchedule(joint);
  EXPECT_EQ(FirstOp(job), 1u);
  const Role& role = joint.roles[0];
  ASSERT_EQ(role.ops.size(), 7u);
  const auto& wait = std::get<Compute>(role.ops[0].work);
  EXPECT_TRUE(IsWait(wait));
  EXPECT_EQ(wait.duration, Seconds(0.5));
  EXPECT_THAT(AfterOf(joint, 0, 1), ElementsAre());   // the product, on the stream of the wait
  EXPECT_THAT(AfterOf(joint, 0, 2), ElementsAre(0));  // the sum
  EXPECT_THAT(AfterOf(joint, 0, 3), ElementsAre(2));
  EXPECT_THAT(AfterOf(joint, 0, 4), ElementsAre(1));
  EXPECT_THAT(AfterOf(joint, 0, 5), ElementsAre(4));
  EXPECT_THAT(AfterOf(joint, 0, 6), ElementsAre(3));
  EXPECT_EQ(joint.model_flops, Flops(6e6));
}

// The product is done twice more: steps of four ops, in which the sum waits for the last product.
TEST(JobsTest, StepsOfARoleThatRepeatsItselfAreWrittenOut) {
  Schedule schedule = JobOfTwoRanks();
  schedule.roles[0].ops[1].after = {OpId(0)};
  schedule.roles[0].repeats = {{.begin = 0, .end = 1, .times = 2}};
  ASSERT_EQ(schedule.roles[0].OpCount(), 4u);
  const Schedule joint = Join({{"a", schedule, {0, 1}, Seconds(0), 2}}, 2);
  CheckSchedule(joint);
  EXPECT_EQ(joint.roles[0].OpCount(), 8u);
  EXPECT_THAT(AfterOf(joint, 0, 3), ElementsAre(2));
  EXPECT_THAT(AfterOf(joint, 0, 4), ElementsAre(3));
  // The first of its stream in the second step also waits for all of the first step, as any would.
  EXPECT_THAT(AfterOf(joint, 0, 7), ElementsAre(6, 2));
}

}  // namespace jobs_test
}  // namespace rehearse
