// Pipelines whose ranks update before they know the whole gradient norm: a step lasts as long as
// its longest rank, since each goes on with the next step by itself.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace validated_update_test {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::ReadSmall;

std::vector<std::string> Changes(const std::string& schedule, const std::string& validation) {
  return {"cluster=switch:devices=4",
          "model.layers=8",
          "model.tied=false",
          "training.batch=32",
          "training.micro_batches=32",
          "training.recomputation=none",
          R"(strategy={"kind": "data-parallel", "data": 1, "overlap_gradients": true})",
          R"(pipeline={"stages": 4, "schedule": ")" + schedule + R"(", "validation": ")" +
              validation + "\"}"};
}

// Without the sum of the norm over all ranks, which would be the last thing before Adam.
Schedule WithoutWholeNorm(Schedule schedule) {
  for (Role& role : schedule.roles) {
    const size_t sum = role.ops.size() - 2;
    EXPECT_EQ(role.ops[sum].name, "all-reduce gradient norm");
    Op adam = role.ops.back();
    EXPECT_EQ(adam.name, "Adam");
    std::erase(adam.after, OpId(static_cast<uint32_t>(sum)));
    role.ops.resize(sum);
    role.ops.push_back(adam);
  }
  return schedule;
}

Seconds StepsInARow(const Scenario& like, const Schedule& schedule, uint32_t count) {
  Scenario scenario = like;
  scenario.jobs.front().work = schedule;
  scenario.jobs.front().repeat = count;
  return ToSeconds(PlayScenario(scenario).simulation.timeline.step);
}

TEST(ValidatedUpdateTest, AStepLastsAsLongAsItsLongestRank) {
  for (const std::string schedule : {"1f1b", "zb-h2", "zb-2p"}) {
    const Scenario before = ReadSmall(Changes(schedule, "before-update"));
    const Schedule free = WithoutWholeNorm(PlayScenario(before).schedule());
    const Seconds period = StepsInARow(before, free, 6) - StepsInARow(before, free, 5);
    const Rehearsal after = Rehearse(ReadSmall(Changes(schedule, "after-update")));
    EXPECT_NEAR(after.result.step / period, 1, 0.01) << schedule;
    EXPECT_LT(after.result.step, ToSeconds(after.timeline.step)) << schedule;
    const Breakdown& parts = after.result.breakdown;
    EXPECT_NEAR((parts.compute + parts.exposed_communication + parts.idle) / after.result.step, 1,
                1e-9);
  }
}

TEST(ValidatedUpdateTest, RanksNoLongerWaitForTheWholeNorm) {
  // The last rank of four begins three forward passes after the first, which is what it gains.
  const Seconds before = Rehearse(ReadSmall(Changes("zb-h2", "before-update"))).result.step;
  const Seconds after = Rehearse(ReadSmall(Changes("zb-h2", "after-update"))).result.step;
  const Seconds again = Rehearse(ReadSmall(Changes("zb-h2", "done-again"))).result.step;
  EXPECT_LT(after, before);
  EXPECT_GT(again, before);
}

TEST(ValidatedUpdateTest, SharesThatAreGatheredAfterTheUpdateAreRefused) {
  std::vector<std::string> changes = Changes("zb-h1", "after-update");
  changes.emplace_back("cluster=switch:devices=8");
  changes.emplace_back("training.batch=64");
  changes.emplace_back(
      R"(strategy={"kind": "zero-1", "shard": 2, "replicas": 1, "overlap_gradients": true})");
  EXPECT_THAT(ErrorOf(changes), HasSubstr("stages 0 and 3 can do it"));
}

}  // namespace validated_update_test
}  // namespace rehearse
