// Steps into which a cause was put, at a strength that no row of the table simulates, are
// diagnosed.
//
//   REHEARSE_DIAGNOSES=400 test_scenarios --gtest_filter='StepInverseTest.*'   more of them
#include "scenarios/diagnosing/step_diagnosis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/diagnosing/timeline_parts.h"
#include "scenarios/evaluating/engine.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/report/comparison.h"
#include "sim/report/timeline_record.h"
#include "tests/scenarios/diagnosing/random_steps.h"

namespace rehearse {
namespace step_diagnosis_test {

std::vector<MeasuredStep> Measured(const std::vector<std::string>& texts) {
  std::vector<MeasuredStep> measured;
  for (const std::string& text : texts) measured.push_back(ParseMeasuredStep(text));
  return measured;
}

bool IsInFirst(const StepDiagnosis& diagnosis, const std::string& cause) {
  if (diagnosis.findings.empty()) return false;
  const std::vector<SuspectedStepCause>& causes = diagnosis.findings.front().causes;
  return std::any_of(causes.begin(), causes.end(), [&](const SuspectedStepCause& suspect) {
    return suspect.cause->name == cause;
  });
}

TEST(MeasuredStepTest, WhatPeopleWriteIsRead) {
  EXPECT_EQ(ParseMeasuredStep("2.3 s").value, 2.3);
  EXPECT_EQ(ParseMeasuredStep("850ms").value, 0.85);
  EXPECT_EQ(ParseMeasuredStep("14,089 tokens/s").value, 14089);
  EXPECT_EQ(ParseMeasuredStep("840 tokens/s/gpu").measure, StepMeasure::kTokensPerDevice);
  EXPECT_EQ(ParseMeasuredStep("45 % MFU").value, 0.45);
  EXPECT_EQ(ParseMeasuredStep("410 TFLOP/s/gpu").value, 410e12);
  EXPECT_EQ(ParseMeasuredStep("idle 0s").measure, StepMeasure::kIdle);
  const MeasuredStep other = ParseMeasuredStep("1.9 s with cluster.nodes=8, training.batch=64");
  EXPECT_EQ(other.value, 1.9);
  EXPECT_EQ(other.changes, (std::vector<std::string>{"cluster.nodes=8", "training.batch=64"}));
  for (const char* text :
       {"840", "fast", "12 parsecs", "120 % MFU", "0 s", "-3 s", "2 s with nodes"})
    EXPECT_THROW(ParseMeasuredStep(text), Error) << text;
}

// Frontier's steps are in no table.
TEST(StepDiagnosisTest, ItIsJudgedByPublishedStepsOnlyWhereSomeAreLikeIt) {
  const auto judged_by = [](const char* name) {
    return DiagnoseStep(ShippedStep(name), Measured({"100 s"})).model_error_of;
  };
  EXPECT_NE(judged_by("strategy-fsdp").find(" published steps ("), std::string::npos);
  EXPECT_EQ(judged_by("cpu-u-net"), "");
}

// 912 ms are expected.
TEST(StepDiagnosisTest, NothingIsWrongWithWhatIsExpected) {
  const StepDiagnosis diagnosis = DiagnoseStep(ShippedStep("strategy-fsdp"), Measured({"0.93 s"}));
  EXPECT_FALSE(diagnosis.is_something_wrong);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_GT(diagnosis.nothing_wrong, 0.5);
}

TEST(StepDiagnosisTest, WhatIsFasterHasNoCause) {
  const StepDiagnosis diagnosis = DiagnoseStep(ShippedStep("strategy-fsdp"), Measured({"0.3 s"}));
  EXPECT_FALSE(diagnosis.is_something_wrong);
  EXPECT_TRUE(diagnosis.is_faster);
}

// One number does not say what it is; a profile does: 1.6 s of a step of 2.5 s in which only
// transfers run are a slow network's.
TEST(StepDiagnosisTest, AProfileTellsApartWhatOneNumberDoesNot) {
  const StepDiagnosis alone = DiagnoseStep(ShippedStep("strategy-fsdp"), Measured({"2.5 s"}));
  ASSERT_TRUE(alone.is_something_wrong);
  EXPECT_GE(alone.findings.front().causes.size(), 3u);
  EXPECT_TRUE(IsInFirst(alone, "slow-network"));
  EXPECT_TRUE(IsInFirst(alone, "slow-devices"));
  EXPECT_TRUE(IsInFirst(alone, "stall"));
  const StepDiagnosis profiled =
      DiagnoseStep(ShippedStep("strategy-fsdp"),
                   Measured({"2.5 s", "compute 0.85 s", "exposed 1.65 s", "idle 0 s"}));
  ASSERT_TRUE(profiled.is_something_wrong);
  EXPECT_TRUE(IsInFirst(profiled, "slow-network"));
  EXPECT_FALSE(IsInFirst(profiled, "slow-devices"));
  EXPECT_FALSE(IsInFirst(profiled, "stall"));
}

TEST(StepDiagnosisTest, StepsThatCannotBePlayedAreErrors) {
  EXPECT_THROW(DiagnoseStep(ShippedStep("strategy-fsdp"), Measured({"1 s with strategy.shard=3"})),
               Error);
  EXPECT_THROW(DiagnoseStep(ShippedStep("jobs-two-trainings"), Measured({"1 s"})), Error);
}

// ---- Causes put in at random --------------------------------------------------------------------

// The step and its parts, with noise of a few percent.
std::vector<MeasuredStep> Noisy(const Result& result, StepDice& dice) {
  const auto part = [&](StepMeasure measure, Seconds value) {
    return MeasuredStep{"", measure, value.value() * std::exp(0.03 * dice.Normal())};
  };
  return {part(StepMeasure::kStep, result.step),
          part(StepMeasure::kCompute, result.breakdown.compute),
          part(StepMeasure::kExposed, result.breakdown.exposed_communication),
          part(StepMeasure::kIdle, result.breakdown.idle)};
}

// Nothing if it cannot be, or lengthens the step by less than a quarter.
std::optional<Result> PlayWith(const JsonDocument& scenario, const Result& expected,
                               const StepCause& cause, StepDice& dice, Engine& engine) {
  const double strength = RandomStrength(cause, dice);
  if (cause.only_adds) {
    Result stalled = expected;
    stalled.step = (1 + strength) * expected.step;
    stalled.breakdown.idle += strength * expected.step;
    if (strength < 0.25) return std::nullopt;
    return stalled;
  }
  const std::optional<JsonDocument> document = WithCause(scenario, cause, strength, engine);
  if (!document) return std::nullopt;
  try {
    Scenario read = engine.Read(*document);
    read.allow_out_of_memory = true;
    Result result = engine.Play(read);
    if (result.step / expected.step < 1.25) return std::nullopt;
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(StepInverseTest, WhatWasPutIntoAStepIsFoundInItsProfile) {
  const size_t steps = StepsToDiagnose(10);
  StepScore score;
  StepDice dice(45);
  Engine engine({.allow_out_of_memory = true, .hash = false});
  while (score.faults + score.healthy < steps) {
    const JsonDocument scenario = ShippedStep(kRandomSteps[dice.Below(std::size(kRandomSteps))]);
    const Result expected = engine.Play(engine.Read(scenario));
    if (dice.Uniform() < 0.2) {
      score.Add("", DiagnoseStep(scenario, Noisy(expected, dice)));
      continue;
    }
    const StepCause& cause = StepCauses()[dice.Below(StepCauses().size())];
    const std::optional<Result> result = PlayWith(scenario, expected, cause, dice, engine);
    if (result) score.Add(cause.name, DiagnoseStep(scenario, Noisy(*result, dice)));
  }
  score.PrintAndExpect();
}

// The same by way of timelines, as a profile shows them: kernels of each run take now longer, now
// shorter, and what is told of it are the parts that a comparison with the expected one finds.
TEST(StepInverseTest, WhatWasPutIntoAStepIsFoundInItsTimeline) {
  const size_t steps = StepsToDiagnose(6);
  StepScore score;
  StepDice dice(46);
  Engine engine({.allow_out_of_memory = true, .hash = false});
  const auto recorded = [&](JsonDocument document, bool is_noisy) {
    if (is_noisy) {
      document.Set("simulator.perturbation.compute_jitter=0.01");
      document.Set(fmt::format("simulator.perturbation.seed={}", dice.Below(1000)));
    }
    Scenario read = ReadScenario(document);
    read.allow_out_of_memory = true;
    Rehearsal rehearsal = Rehearse(read);
    return MakeRecord("a step", rehearsal.schedule, std::move(rehearsal.timeline));
  };
  while (score.faults + score.healthy < steps) {
    const JsonDocument scenario = ShippedStep(kRandomSteps[dice.Below(std::size(kRandomSteps))]);
    const bool is_healthy = dice.Uniform() < 0.2;
    const StepCause& cause = StepCauses()[dice.Below(StepCauses().size())];
    const bool is_jitter = std::string(cause.name) == "jitter";
    if (!is_healthy && cause.only_adds) continue;
    const std::optional<JsonDocument> changed =
        is_healthy ? scenario : WithCause(scenario, cause, RandomStrength(cause, dice), engine);
    if (!changed) continue;
    try {
      const TimelineRecord expected = recorded(scenario, false);
      const TimelineRecord measured = recorded(*changed, is_healthy || !is_jitter);
      const Comparison comparison = Compare(expected, measured);
      if (!is_healthy &&
          ToSeconds(measured.Median().step) / ToSeconds(expected.Median().step) < 1.25)
        continue;
      score.Add(is_healthy ? "" : cause.name,
                DiagnoseStep(scenario, PartsMeasured(comparison),
                             LateRankOf(measured, expected).has_value()));
    } catch (const Error&) {
      continue;  // the machine or the strategy has no such thing
    }
  }
  score.PrintAndExpect();
}

}  // namespace step_diagnosis_test
}  // namespace rehearse
