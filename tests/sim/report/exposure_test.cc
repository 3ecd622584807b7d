#include "sim/report/exposure.h"

#include <gtest/gtest.h>

#include "sim/report/result.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace exposure_test {

// One rank on two axes of two ranks (the other does the same). Compute runs 0..10 and 40..50.
//   row     a 5..20, b 18..30;   column   c 15..25
// exposed: 10..15 a; 15..18 a and c, half each; 18..20 row (a and b share its half) and c; 20..25 b
// and c; 25..30 b. a: 5 + 1.5 + 0.5 = 7; b: 0.5 + 2.5 + 5 = 8; c: 1.5 + 1 + 2.5 = 5; together the
// 20 from 10 to 30.
TEST(ExposureTest, AxesShareEquallyAndWithinAnAxisItsOps) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("row", {{0, 1}}));
  schedule.communicators.push_back(Communicator::Explicit("column", {{0, 1}}));
  Role role;
  role.name = "rank";
  role.streams = {{"compute", StreamKind::kCompute},
                  {"row", StreamKind::kCommunication},
                  {"column", StreamKind::kCommunication}};
  role.ops = {ComputeOp("x", ComputeKind::kGemm, Phase::kForward, 1),
              CollectiveOp("a", CollectiveKind::kAllReduce, 0, 1),
              CollectiveOp("b", CollectiveKind::kAllReduce, 0, 1),
              CollectiveOp("c", CollectiveKind::kAllReduce, 1, 1),
              ComputeOp("y", ComputeKind::kGemm, Phase::kForward, 1)};
  schedule.roles = {role};
  schedule.role_of_rank = {0, 0};
  constexpr int64_t kSecond = 1'000'000'000'000;
  Timeline timeline;
  timeline.ranks = 2;
  timeline.representative = {0, 0};
  const int64_t begin[] = {0, 5, 18, 15, 40};
  const int64_t end[] = {10, 20, 30, 25, 50};
  for (uint32_t op = 0; op < 5; ++op) {
    timeline.spans.push_back(
        SpanAt(0, op, begin[op] * kSecond, begin[op] * kSecond, end[op] * kSecond));
  }
  timeline.step = Time(50 * kSecond);
  const auto exposure = ExposureOfOps(schedule, timeline);
  EXPECT_DOUBLE_EQ(exposure[0][1].exposed.value(), 7);
  EXPECT_DOUBLE_EQ(exposure[0][2].exposed.value(), 8);
  EXPECT_DOUBLE_EQ(exposure[0][3].exposed.value(), 5);
  EXPECT_DOUBLE_EQ(exposure[0][1].seconds.value(), 15);
  EXPECT_DOUBLE_EQ(exposure[0][1].operations, 1);
  EXPECT_DOUBLE_EQ(exposure[0][0].exposed.value(), 0);
}

TEST(ExposureTest, OpsSumToWhatTheResultSaysOfTheirAxisOnRandomSteps) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto [schedule, timeline] = RandomStep(8, 60, seed);
    const Result result = Summarize(schedule, timeline, FlopsPerSecond(1e12));
    const auto exposure = ExposureOfOps(schedule, timeline);
    std::vector<double> by_axis(schedule.communicators.size(), 0);
    for (size_t role = 0; role < exposure.size(); ++role) {
      for (size_t op = 0; op < exposure[role].size(); ++op) {
        const CommunicatorId axis = CommunicatorOf(schedule.roles[role].ops[op].work);
        if (axis.IsSet()) by_axis[axis.index()] += exposure[role][op].exposed.value();
      }
    }
    for (size_t axis = 0; axis < by_axis.size(); ++axis) {
      EXPECT_NEAR(by_axis[axis], result.axes[axis].exposed.value(), 1e-12);
    }
  }
}

}  // namespace exposure_test
}  // namespace rehearse
