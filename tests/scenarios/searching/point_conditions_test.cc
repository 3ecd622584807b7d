// Conditions told from numbers alone say what they say about the whole scenario.
#include "scenarios/searching/point_conditions.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/axes.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace point_conditions_test {

SpaceAxis AxisOf(const std::vector<Changes>& choices) {
  SpaceAxis axis;
  for (const Changes& changes : choices) axis.choices.push_back({"", changes});
  return axis;
}

TEST(PointConditionsTest, AgreeWithTheScenarioOfEachPoint) {
  const nlohmann::json base = {{"strategy", {{"tensor", 2}, {"shard", 4}}},
                               {"training", {{"batch", 64}}}};
  SearchSpace space;
  space.axes = {AxisOf({{{"strategy.tensor", 1}}, {}, {{"strategy.tensor", 8}}}),
                AxisOf({{{"training.micro_batches", 2}}, {{"training.micro_batches", 16}}}),
                AxisOf({{{"pipeline", {{"stages", 4}}}}, {}})};
  space.constraints = {{.product = {"strategy.tensor", "strategy.shard"}, .at_most = 16},
                       {.product = {"training.micro_batches", "strategy.shard"}, .divides = 64},
                       {.product = {"pipeline.stages"}, .equals = 4}};
  const PointConditions conditions(space, base);
  size_t allowed = 0;
  for (uint64_t index = 0; index < static_cast<uint64_t>(space.Size()); ++index) {
    const SpacePoint point = space.PointAt(index);
    JsonDocument document = JsonDocument::FromText(base.dump(), "base.json");
    for (const auto& [path, value] : space.ChangesOf(point))
      document.Set(path + "=" + value.dump());
    // What an axis replaces as a whole is not told from numbers: without a pipeline, the last
    // condition is broken all the same.
    if (document.value().contains("pipeline"))
      EXPECT_EQ(conditions.Allow(point), !space.Broken(document.value()));
    else
      EXPECT_TRUE(space.Broken(document.value()));
    allowed += conditions.Allow(point) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 8);  // tensor 1 and 2 of 3, each with both micro-batches and both pipelines
}

TEST(PointConditionsTest, SayWhichIsBroken) {
  SearchSpace space;
  space.axes = {AxisOf({{{"a", 1}}, {{"a", 3}}})};
  space.constraints = {{.product = {"b"}, .at_most = 4}, {.product = {"a"}, .equals = 1}};
  const PointConditions conditions(space, {{"b", 2}});
  EXPECT_EQ(conditions.BrokenBy({0}), PointConditions::kNone);
  EXPECT_EQ(conditions.BrokenBy({1}), 1);
}

}  // namespace point_conditions_test
}  // namespace rehearse
