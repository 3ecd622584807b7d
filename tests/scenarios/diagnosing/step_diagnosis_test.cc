// Steps into which a cause was put, at a strength that no row of the table simulates, are
// diagnosed.
//
//   REHEARSE_DIAGNOSES=400 test_scenarios --gtest_filter='StepInverseTest.*'   more of them
#include "scenarios/diagnosing/step_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/evaluating/engine.h"
#include "sim/base/error.h"
#include "tests/support/places.h"

namespace rehearse {
namespace step_diagnosis_test {

JsonDocument Shipped(const std::string& name) {
  return JsonDocument::FromFile(SourceDir() + "/scenarios/" + name + ".json");
}

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

// 912 ms are expected.
TEST(StepDiagnosisTest, NothingIsWrongWithWhatIsExpected) {
  const StepDiagnosis diagnosis = DiagnoseStep(Shipped("strategy-fsdp"), Measured({"0.93 s"}));
  EXPECT_FALSE(diagnosis.is_something_wrong);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_GT(diagnosis.nothing_wrong, 0.5);
}

TEST(StepDiagnosisTest, WhatIsFasterHasNoCause) {
  const StepDiagnosis diagnosis = DiagnoseStep(Shipped("strategy-fsdp"), Measured({"0.3 s"}));
  EXPECT_FALSE(diagnosis.is_something_wrong);
  EXPECT_TRUE(diagnosis.is_faster);
}

// One number does not say what it is; a profile does: 1.6 s of a step of 2.5 s in which only
// transfers run are a slow network's.
TEST(StepDiagnosisTest, AProfileTellsApartWhatOneNumberDoesNot) {
  const StepDiagnosis alone = DiagnoseStep(Shipped("strategy-fsdp"), Measured({"2.5 s"}));
  ASSERT_TRUE(alone.is_something_wrong);
  EXPECT_GE(alone.findings.front().causes.size(), 3u);
  EXPECT_TRUE(IsInFirst(alone, "slow-network"));
  EXPECT_TRUE(IsInFirst(alone, "slow-devices"));
  EXPECT_TRUE(IsInFirst(alone, "stall"));
  const StepDiagnosis profiled =
      DiagnoseStep(Shipped("strategy-fsdp"),
                   Measured({"2.5 s", "compute 0.85 s", "exposed 1.65 s", "idle 0 s"}));
  ASSERT_TRUE(profiled.is_something_wrong);
  EXPECT_TRUE(IsInFirst(profiled, "slow-network"));
  EXPECT_FALSE(IsInFirst(profiled, "slow-devices"));
  EXPECT_FALSE(IsInFirst(profiled, "stall"));
}

TEST(StepDiagnosisTest, StepsThatCannotBePlayedAreErrors) {
  EXPECT_THROW(DiagnoseStep(Shipped("strategy-fsdp"), Measured({"1 s with strategy.shard=3"})),
               Error);
  EXPECT_THROW(DiagnoseStep(Shipped("jobs-two-trainings"), Measured({"1 s"})), Error);
}

// ---- Causes put in at random --------------------------------------------------------------------

class StepDice {
 public:
  explicit StepDice(uint64_t seed) : engine_(seed) {}
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  size_t Below(size_t count) { return static_cast<size_t>(engine_() % count); }
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }

 private:
  std::mt19937_64 engine_;
};

constexpr const char* kSteps[] = {"strategy-fsdp",    "strategy-megatron", "strategy-fsdp-llama",
                                  "axonn-fig3-abcde", "strategy-zero-2",   "strategy-zero-1"};

struct StepScore {
  size_t faults = 0;
  size_t first = 0;
  size_t among_three = 0;
  size_t healthy = 0;
  size_t healthy_found = 0;
  size_t causes_in_first = 0;
  std::map<std::string, std::map<std::string, size_t>> confusions;
};

size_t PlaceOf(const StepDiagnosis& diagnosis, const std::string& cause) {
  for (size_t i = 0; i < diagnosis.findings.size(); ++i)
    for (const SuspectedStepCause& suspect : diagnosis.findings[i].causes)
      if (suspect.cause->name == cause) return i + 1;
  return 0;
}

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
  double strength = cause.strengths[dice.Below(cause.strengths.size())];
  if (cause.is_graded)
    strength = cause.strengths.front() *
               std::pow(cause.strengths.back() / cause.strengths.front(), dice.Uniform());
  if (cause.only_adds) {
    Result stalled = expected;
    stalled.step = (1 + strength) * expected.step;
    stalled.breakdown.idle += strength * expected.step;
    if (strength < 0.25) return std::nullopt;
    return stalled;
  }
  try {
    JsonDocument document = scenario;
    const nlohmann::json given = document.value();
    Scenario read = engine.Read(document);
    const std::vector<std::string> changes = cause.changes({given, *read.cluster}, strength);
    if (changes.empty()) return std::nullopt;
    for (const std::string& change : changes) document.Set(change);
    read = engine.Read(document);
    read.allow_out_of_memory = true;
    Result result = engine.Play(read);
    if (result.step / expected.step < 1.25) return std::nullopt;
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(StepInverseTest, WhatWasPutIntoAStepIsFoundInItsProfile) {
  const char* const wanted = std::getenv("REHEARSE_DIAGNOSES");
  const size_t steps = wanted == nullptr ? 10 : std::strtoul(wanted, nullptr, 10);
  StepScore score;
  StepDice dice(45);
  Engine engine({.allow_out_of_memory = true, .hash = false});
  while (score.faults + score.healthy < steps) {
    const JsonDocument scenario = Shipped(kSteps[dice.Below(std::size(kSteps))]);
    const Result expected = engine.Play(engine.Read(scenario));
    if (dice.Uniform() < 0.2) {
      const StepDiagnosis diagnosis = DiagnoseStep(scenario, Noisy(expected, dice));
      ++score.healthy;
      score.healthy_found += diagnosis.is_something_wrong ? 0 : 1;
      continue;
    }
    const StepCause& cause = StepCauses()[dice.Below(StepCauses().size())];
    const std::optional<Result> result = PlayWith(scenario, expected, cause, dice, engine);
    if (!result) continue;
    const StepDiagnosis diagnosis = DiagnoseStep(scenario, Noisy(*result, dice));
    const size_t place = PlaceOf(diagnosis, cause.name);
    ++score.faults;
    score.first += place == 1 ? 1 : 0;
    score.among_three += place >= 1 && place <= 3 ? 1 : 0;
    if (!diagnosis.findings.empty())
      score.causes_in_first += diagnosis.findings.front().causes.size();
    ++score.confusions[cause.name][place == 1 ? cause.name
                                   : diagnosis.findings.empty()
                                       ? "nothing"
                                       : diagnosis.findings.front().causes.front().cause->name];
  }
  for (const auto& [truth, found] : score.confusions) {
    fmt::print("  {:<21}", truth);
    for (const auto& [name, count] : found) fmt::print(" {} {}", name, count);
    fmt::print("\n");
  }
  const auto faults = static_cast<double>(score.faults);
  fmt::print(
      "{} steps with a fault: its cause is in the first finding of {:.1f} % (which has {:.1f} "
      "causes "
      "in the mean), in the first three of {:.1f} %; {} without: nothing is found in {}\n",
      score.faults, 100 * static_cast<double>(score.first) / faults,
      static_cast<double>(score.causes_in_first) / faults,
      100 * static_cast<double>(score.among_three) / faults, score.healthy, score.healthy_found);
  EXPECT_GE(static_cast<double>(score.first), 0.85 * faults);
  EXPECT_GE(static_cast<double>(score.among_three), 0.95 * faults);
  EXPECT_GE(static_cast<double>(score.healthy_found), 0.95 * static_cast<double>(score.healthy));
}

}  // namespace step_diagnosis_test
}  // namespace rehearse
