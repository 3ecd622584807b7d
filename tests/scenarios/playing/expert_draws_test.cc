// Steps in which a seed decides which experts are busy are shown with a range.
#include "scenarios/playing/expert_draws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/explaining/explanation.h"
#include "sim/base/json_document.h"
#include "sim/report/result.h"
#include "tests/support/places.h"

namespace rehearse {
namespace expert_draws_test {

using ::testing::HasSubstr;

Result ResultWith(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/cpu-experts.json");
  document.Set("training.batch=16");  // whole runs of tokens on each rank
  for (const std::string& change : changes) document.Set(change);
  return Rehearse(ReadScenario(document)).result;
}

TEST(ExpertDrawsTest, AnImbalanceHasARangeOverDraws) {
  const Result result = ResultWith({"model.experts.imbalance=2"});
  ASSERT_TRUE(result.experts.has_value());
  const ExpertSpread& spread = *result.experts;
  EXPECT_EQ(spread.imbalance, 2);
  ASSERT_EQ(spread.steps.size(), kExpertDraws);
  EXPECT_LT(spread.steps.front().step, spread.steps.back().step);
  EXPECT_LT(spread.even, spread.steps.front().step);
  for (const SeededStep& draw : spread.steps) {
    // The step that is shown is the first draw's, as `plan` and `execute` have it.
    if (draw.seed == 1) {
      EXPECT_EQ(draw.step, result.step);
    }
    // Each is the step of a scenario that names the seed.
    const Result own = ResultWith(
        {"model.experts.imbalance=2", "model.experts.seed=" + std::to_string(draw.seed)});
    EXPECT_EQ(own.step, draw.step);
    EXPECT_FALSE(own.experts.has_value());
  }
  EXPECT_EQ(ResultWith({}).step, spread.even);
  EXPECT_THAT(ToText(result, false), HasSubstr("over 8 of them, this is the first"));
}

TEST(ExpertDrawsTest, ExplainTellsTheRangeToo) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/cpu-experts.json");
  for (const char* change : {"training.batch=16", "model.experts.imbalance=2"})
    document.Set(change);
  const Explanation explanation = Explain(ReadScenario(document));
  const Result run = Rehearse(ReadScenario(document)).result;
  EXPECT_THAT(ToText(explanation, 5, false), HasSubstr(ExpertLine(run)));
}

TEST(ExpertDrawsTest, EvenExpertsHaveNone) {
  EXPECT_FALSE(ResultWith({}).experts.has_value());
  EXPECT_EQ(ExpertLine(ResultWith({})), "");
}

}  // namespace expert_draws_test
}  // namespace rehearse
