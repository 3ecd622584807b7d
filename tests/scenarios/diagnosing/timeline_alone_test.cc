// What stands out in timelines that are made by hand: two ranks, a kernel and an all-reduce each.
#include "scenarios/diagnosing/timeline_alone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace timeline_alone_test {

using ::testing::HasSubstr;

Time At(double milliseconds) { return ToTime(Seconds(milliseconds * 1e-3)); }

struct Kernel {
  double begin = 0;  // ms
  double end = 0;
};

// The ranks compute, then sum up from when both are done, for 10 ms.
TimelineRecord Step(const std::vector<Kernel>& computing, double step_end = 0) {
  TimelineRecord record;
  record.title = "by hand";
  record.provenance = Provenance::kMeasured;
  RecordedRole role;
  role.name = "all";
  role.ops.resize(2);
  role.ops[0].name = "product";
  role.ops[0].kind = "gemm";
  role.ops[1].name = "gradients";
  role.ops[1].kind = "all-reduce";
  role.ops[1].axis = "data";
  record.roles = {role};
  record.role_of_rank.assign(computing.size(), 0);
  double all = 0;
  for (const Kernel& kernel : computing) all = std::max(all, kernel.end);
  Timeline timeline;
  timeline.provenance = Provenance::kMeasured;
  timeline.ranks = static_cast<uint32_t>(computing.size());
  for (uint32_t rank = 0; rank < computing.size(); ++rank) {
    const Kernel& kernel = computing[rank];
    timeline.spans.push_back({rank, 0, At(kernel.begin), At(kernel.begin), At(kernel.end)});
    timeline.spans.push_back({rank, 1, At(kernel.end), At(all), At(all + 10)});
  }
  timeline.step = At(std::max(all + 10, step_end));
  record.steps.push_back({false, timeline});
  return record;
}

std::vector<std::string> Signs(const TimelineView& view) {
  std::vector<std::string> names;
  for (const TimelineSign& sign : view.signs) names.push_back(sign.name);
  return names;
}

// Both compute for 90 ms, and 10 of 100 are exposed.
TEST(TimelineAloneTest, TheTimeOfARankIsPartedAsItIs) {
  const TimelineView view = LookAt(Step({{0, 90}, {0, 90}}));
  EXPECT_NEAR(view.step.value(), 0.1, 1e-9);
  EXPECT_NEAR(view.shares.compute.value(), 0.09, 1e-9);
  EXPECT_NEAR(view.shares.communication.value(), 0.01, 1e-9);
  EXPECT_EQ(Signs(view), std::vector<std::string>{"exposed"});
  EXPECT_NEAR(view.signs.front().share, 0.1, 1e-9);
  ASSERT_EQ(view.ops.size(), 2u);
  EXPECT_EQ(view.ops.front().name, "product");
  EXPECT_EQ(view.ops.front().count, 1);
}

// Rank 1 takes 80 ms where rank 0 takes 60: in the mean, ranks wait 10 of 90 ms.
TEST(TimelineAloneTest, ALateRankIsNamed) {
  const TimelineView view = LookAt(Step({{0, 60}, {0, 80}}));
  ASSERT_FALSE(view.signs.empty());
  const auto late = std::find_if(view.signs.begin(), view.signs.end(),
                                 [](const TimelineSign& sign) { return sign.name == "straggler"; });
  ASSERT_NE(late, view.signs.end());
  EXPECT_THAT(late->what, HasSubstr("rank 1 computes 1.33 times as long"));
  EXPECT_NEAR(late->share, 10.0 / 90, 1e-9);
}

// Rank 1 begins 20 ms late, and computes as long as rank 0.
TEST(TimelineAloneTest, AStallIsFoundWhereItIs) {
  const TimelineView view = LookAt(Step({{0, 60}, {20, 80}}));
  const std::vector<std::string> signs = Signs(view);
  EXPECT_EQ(signs.front(), "stall");
  EXPECT_THAT(view.signs.front().what,
              HasSubstr("rank 1 does nothing for 20 ms between the step's begin and \"product\""));
  EXPECT_THAT(signs, testing::Contains("jitter"));
  EXPECT_THAT(signs, testing::Not(testing::Contains("straggler")));
}

TEST(TimelineAloneTest, StepsThatComeAndGoAreTold) {
  TimelineRecord record = Step({{0, 90}, {0, 90}});
  record.steps.push_back(record.steps.front());
  record.steps.push_back({false, Step({{0, 140}, {0, 140}}).steps.front().timeline});
  const TimelineView view = LookAt(record);
  EXPECT_EQ(view.steps, 3u);
  EXPECT_EQ(view.signs.front().name, "uneven-steps");
  EXPECT_NEAR(view.signs.front().share, 0.5, 1e-9);
  EXPECT_THAT(ToText(view, 1), HasSubstr("… and 1 more"));
  EXPECT_EQ(ToJson(view)["signs"][0]["sign"], "uneven-steps");
}

// In one of six steps, rank 1 takes 390 ms for what takes 90: 300/6 ms of a step are lost.
TEST(TimelineAloneTest, ARankThatIsStoppedNowAndThenIsNamed) {
  TimelineRecord record = Step({{0, 90}, {0, 90}});
  for (int i = 0; i < 4; ++i) record.steps.push_back(record.steps.front());
  record.steps.push_back({false, Step({{0, 90}, {0, 390}}).steps.front().timeline});
  const TimelineView view = LookAt(record);
  const auto stopped =
      std::find_if(view.signs.begin(), view.signs.end(),
                   [](const TimelineSign& sign) { return sign.name == "interrupted"; });
  ASSERT_NE(stopped, view.signs.end());
  EXPECT_THAT(stopped->what, HasSubstr("rank 1 is stopped now and then"));
  EXPECT_NEAR(stopped->share, 50.0 / 100, 1e-9);
}

TEST(TimelineAloneTest, NothingStandsOutWhereAllComputes) {
  TimelineRecord record = Step({{0, 990}});
  record.steps.front().timeline.spans[1].end = At(991);
  record.steps.front().timeline.step = At(991);
  EXPECT_THAT(ToText(LookAt(record), 5), HasSubstr("Nothing stands out."));
}

}  // namespace timeline_alone_test
}  // namespace rehearse
