#include "scenarios/sweeping/validation.h"

#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "tests/support/places.h"

namespace rehearse {
namespace validation_test {

using ::testing::HasSubstr;

constexpr const char* kHeader =
    "name,cluster,model.preset,training.batch,training.sequence,training.recomputation,"
    "strategy.kind,strategy.data,strategy.overlap_gradients";
// Of one node; the measured figure follows.
constexpr const char* kRow = ",dgx-a100,gpt-125m,8,1024,none,data-parallel,8,true";

ValidationTable TableOf(const std::string& text) {
  return ReadValidationTable(ParseCsvFile(text, "t.csv"), {});
}

Validation Judged(const std::string& text) { return Validate(TableOf(text), 1, NoObserver()); }

std::string MistakeOf(const std::string& text) {
  try {
    Judged(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// The step of kRow as `rehearse run` has it.
Result Predicted() {
  const ValidationTable table = TableOf(std::string(kHeader) + ",step\na" + kRow + ",1s\n");
  return Rehearse(ReadScenario(table.rows.front().document)).result;
}

TEST(ValidationTest, WhenItIsStoppedTheRowsThatWerePlayedAreJudged) {
  ValidationTable table = TableOf(std::string(kHeader) + ",step\na" + kRow + ",1s\nb" + kRow +
                                  ",2s\nc" + kRow + ",3s\n");
  int asked = 0;
  const Validation validation = Validate(&table, 1, NoObserver(), [&] { return asked++ == 1; });
  ASSERT_EQ(table.rows.size(), 2u);  // all but the second
  EXPECT_EQ(table.rows.back().name, "c");
  EXPECT_EQ(validation.rows.back().measured, Seconds(3));
  EXPECT_EQ(validation.groups.front().rows.size(), 2u);
  EXPECT_THROW(Validate(&table, 1, NoObserver(), [] { return true; }), Stopped);
}

TEST(ValidationTest, AStepMeasuredTenPercentLongerThanPredictedIsAnElevenThError) {
  const Result predicted = Predicted();
  ASSERT_TRUE(predicted.typical);
  const double longer = 1.1 * predicted.typical->median.value();
  const Validation validation =
      Judged(fmt::format("{},step\na{},{:.12f}s\n", kHeader, kRow, longer));
  const ValidatedRow& row = validation.rows.front();
  EXPECT_NEAR(row.error, 1 / 1.1 - 1, 1e-9);
  EXPECT_NEAR(row.measured_mfu, row.predicted_mfu / 1.1, 1e-9);
  EXPECT_NEAR(row.predicted_mfu * predicted.typical->median.value(),
              predicted.model_flops_utilization * predicted.step.value(), 1e-9);
  // The parts sum to the step; the factor of a part makes up for the missing tenth.
  const Seconds sum = std::accumulate(row.parts.begin(), row.parts.end(), Seconds(0));
  EXPECT_NEAR(sum.value(), row.predicted.value(), 1e-9);
  const Seconds gemm = row.parts[static_cast<size_t>(StepPart::kGemm)];
  ASSERT_TRUE(row.factors[static_cast<size_t>(StepPart::kGemm)]);
  EXPECT_NEAR(*row.factors[static_cast<size_t>(StepPart::kGemm)],
              1 + 0.1 * row.predicted.value() / gemm.value(), 1e-6);
  ASSERT_EQ(validation.groups.size(), 1u);
  EXPECT_EQ(validation.groups.front().name, "a100-40g, data-parallel");
}

TEST(ValidationTest, TokensAndUtilisationSayTheSameAsTheStep) {
  const Result predicted = Predicted();
  const Validation tokens = Judged(fmt::format("{},tokens_per_second\na{},{:.12f}\n", kHeader, kRow,
                                               predicted.tokens_per_second / 2));
  // Half the rate is twice the step without waiting.
  const double half = predicted.typical->median / (2 * predicted.step) - 1;
  EXPECT_NEAR(tokens.rows.front().error, half, 1e-9);
  const Validation mfu = Judged(
      fmt::format("{},mfu\na{},{:.15f}\n", kHeader, kRow, predicted.model_flops_utilization / 2));
  EXPECT_NEAR(mfu.rows.front().error, half, 1e-9);
}

TEST(ValidationTest, GroupsAreJudgedByMeanMedianBiasAndOrder) {
  std::vector<ValidatedRow> rows(4);
  const double errors[] = {0.05, -0.15, 0.10, -0.08};
  const double measured[] = {0.30, 0.40, 0.41, 0.50};
  const double predicted[] = {0.32, 0.45, 0.43, 0.44};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].error = errors[i];
    rows[i].measured_mfu = measured[i];
    rows[i].predicted_mfu = predicted[i];
  }
  rows[1].memory_error = -0.04;
  rows[2].memory_error = 0.02;
  const ValidatedGroup group = Judge("g", {0, 1, 2, 3}, rows);
  EXPECT_NEAR(group.mean, (0.05 + 0.15 + 0.10 + 0.08) / 4, 1e-12);
  EXPECT_NEAR(group.median, (0.08 + 0.10) / 2, 1e-12);
  EXPECT_NEAR(group.bias, (0.05 - 0.15 + 0.10 - 0.08) / 4, 1e-12);
  EXPECT_EQ(group.within, 3u);
  // 0.40 and 0.41 are one point apart and count as equal; of the other five pairs the second and
  // the last row are in the wrong order.
  EXPECT_EQ(group.pairs, 5u);
  EXPECT_EQ(group.ordered, 4u);
  EXPECT_EQ(group.memory_rows, 2u);
  EXPECT_NEAR(group.memory_mean, 0.03, 1e-12);
  EXPECT_NEAR(group.memory_worst, 0.04, 1e-12);
}

TEST(ValidationTest, APlanThatDoesNotFitTheMemoryIsPlayedAllTheSame) {
  const Validation validation = Judged(
      std::string(kHeader) + ",step\na,dgx-a100,gpt-6.7b,64,2048,none,data-parallel,8,true,1s\n");
  EXPECT_GT(validation.rows.front().memory.value(), 40.0 * (uint64_t{1} << 30));
}

TEST(ValidationTest, MistakesNameFileAndLine) {
  const std::string table = std::string(kHeader) + ",step\n";
  const std::string good = std::string("a") + kRow + ",1s\n";
  EXPECT_THAT(MistakeOf(table + good + good), HasSubstr("t.csv:3: a row is already called \"a\""));
  EXPECT_THAT(MistakeOf(table + "a" + kRow + ",1\n"), HasSubstr("t.csv:2: step: found \"1\""));
  EXPECT_THAT(MistakeOf(table + "a" + kRow + ",-1s\n"), HasSubstr("t.csv:2: step: found \"-1s\""));
  EXPECT_THAT(MistakeOf(table + "a" + kRow + ",\n"), HasSubstr("t.csv:2: found 0 of \"step\""));
  EXPECT_THAT(MistakeOf(std::string(kHeader) + ",mfu\na" + kRow + ",41\n"),
              HasSubstr("t.csv:2: mfu: found \"41\", expected a share"));
  EXPECT_THAT(MistakeOf(std::string(kHeader) + ",stpe\n" + good),
              HasSubstr("t.csv:1: there is no column \"stpe\"; did you mean \"step\"?"));
  EXPECT_THAT(MistakeOf(table + "a,dgx-a100,gpt-125m,7,1024,none,data-parallel,8,true,1s\n"),
              HasSubstr("t.csv:2: /strategy: a batch of 7"));
  EXPECT_THAT(MistakeOf(table + "a,dgx-a100,gpt-125m,8,,none,data-parallel,8,true,1s\n"),
              HasSubstr("t.csv:2: /training: missing key \"sequence\""));
  EXPECT_THAT(MistakeOf(table), HasSubstr("t.csv: found no rows"));
}

TEST(ValidationTest, TheShippedTableIsReadWithoutAMistake) {
  const ValidationTable table =
      ReadValidationTable(ReadCsvFile(SourceDir() + "/scenarios/validation/published.csv"), {});
  EXPECT_GE(table.rows.size(), 100u);
  for (const MeasuredRow& row : table.rows) {
    EXPECT_NE(row.source, "") << row.name;
    EXPECT_NO_THROW(ReadScenario(row.document)) << row.name;
  }
}

// 1,024 sequences of a device keep more than its 40 GB.
TEST(ValidationTest, ARowFitsOnlyWhereThereIsRoom) {
  const auto row_of = [](const char* sequences) {
    return Judged(fmt::format("{},step\na,dgx-a100,gpt-125m,{},1024,none,data-parallel,8,true,1s\n",
                              kHeader, sequences))
        .rows.front();
  };
  EXPECT_TRUE(row_of("8").fits);
  EXPECT_FALSE(row_of("8192").fits);
}

}  // namespace validation_test
}  // namespace rehearse
