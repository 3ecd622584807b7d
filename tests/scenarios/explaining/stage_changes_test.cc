// What fewer stages, more micro-batches and more stages per rank give, beside steps that are asked
// for directly.
#include "scenarios/explaining/stage_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace stage_changes_test {

using ::testing::HasSubstr;
using testing::ReadSmall;

std::vector<std::string> Changes(std::vector<std::string> more = {}) {
  std::vector<std::string> changes = {
      "cluster=switch:devices=8",
      "model.layers=8",
      "training.batch=32",
      "training.micro_batches=8",
      "training.recomputation=none",
      R"(strategy={"kind": "data-parallel", "data": 2, "overlap_gradients": true})",
      R"(pipeline={"stages": 4, "schedule": "1f1b"})"};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::vector<StageChange> Try(const std::vector<std::string>& changes) {
  std::vector<std::string> left_out;
  std::vector<StageChange> rows = TryStageChanges(ReadSmall(changes), NoObserver(), &left_out);
  EXPECT_TRUE(left_out.empty());
  return rows;
}

Seconds StepWith(const std::vector<std::string>& more) {
  return Rehearse(ReadSmall(Changes(more))).result.step;
}

TEST(StageChangesTest, EachIsTheStepThatAScenarioOfItsOwnHas) {
  const std::vector<StageChange> rows = Try(Changes());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].what, "2 stages instead of 4, 2 times as many replicas");
  EXPECT_EQ(rows[0].step,
            StepWith({"pipeline.stages=2", "strategy.data=4", "training.micro_batches=4"}));
  EXPECT_EQ(rows[1].what, "16 micro-batches instead of 8");
  EXPECT_EQ(rows[1].step, StepWith({"training.micro_batches=16"}));
  EXPECT_EQ(rows[2].what, "interleaved, 2 stages per rank instead of 1");
  EXPECT_EQ(rows[2].step, StepWith({"pipeline.schedule=interleaved", "pipeline.virtual=2"}));
  EXPECT_EQ(rows[3].step, StepWith({"pipeline.schedule=zb-h1"}));
}

TEST(StageChangesTest, FewerStagesAndMoreOfThemPerRankIdleLess) {
  // (p-1)/(m+p-1) of a step: 3/11 with 4 stages; 1/5 with 2 and half as many micro-batches; and
  // with two stages per rank 3/19.
  const Result as_it_is = Rehearse(ReadSmall(Changes())).result;
  const double idle = as_it_is.breakdown.idle / as_it_is.step;
  const std::vector<StageChange> rows = Try(Changes());
  ASSERT_EQ(rows.size(), 4u);
  for (const StageChange& row : rows) EXPECT_LT(row.idle, idle) << row.what;
}

TEST(StageChangesTest, WhatCannotBeSaysWhy) {
  const std::vector<StageChange> rows = Try(Changes({"model.layers=4"}));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(rows[2].refused, HasSubstr("do not split evenly into 8 stages"));
  EXPECT_EQ(rows[2].step, Seconds(0));
}

TEST(StageChangesTest, WithoutStagesThereAreNone) {
  EXPECT_TRUE(Try({"cluster=switch:devices=8"}).empty());
}

}  // namespace stage_changes_test
}  // namespace rehearse
