#include "sim/report/comparison.h"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace comparison_test {

using ::testing::HasSubstr;
using ::testing::Not;

TimelineRecord RecordOf(const TwoRankStep& step, std::string title) {
  return MakeRecord(std::move(title), step.schedule, step.timeline);
}

const ComparedOp& OpNamed(const Comparison& comparison, const std::string& name) {
  for (const ComparedOp& op : comparison.ops) {
    if (op.op.name == name) return op;
  }
  throw std::logic_error("no op " + name);
}

constexpr double kTiny = 1e-15;

TEST(ComparisonTest, ATimelineDiffersInNothingFromItself) {
  const TwoRankStep step;
  const Comparison comparison = Compare(RecordOf(step, "a"), RecordOf(step, "b"));
  EXPECT_EQ(comparison.step.Difference(), 0);
  EXPECT_EQ(comparison.ops.size(), 5u);
  EXPECT_EQ(comparison.only_in_a + comparison.only_in_b, 0u);
  EXPECT_EQ(comparison.pairs_out_of_order, 0);
  for (const ComparedOp& op : comparison.ops) EXPECT_EQ(op.time.a, op.time.b) << op.op.name;
}

// The gemm takes 10 µs on rank 0 and 12 µs on rank 1: 11 in the mean. Where rank 1 took 18, the
// mean is 14 and a is 3/14 too short.
TEST(ComparisonTest, ErrorsAreOfMeansOverRanksAgainstB) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.spans[5].end = Time(18 * kMicrosecond);
  const Comparison comparison = Compare(RecordOf(a, "a"), RecordOf(b, "b"));
  const ComparedOp& gemm = OpNamed(comparison, "gemm");
  EXPECT_NEAR(gemm.time.a.value(), 11e-6, kTiny);
  EXPECT_NEAR(gemm.time.b.value(), 14e-6, kTiny);
  EXPECT_NEAR(gemm.time.Difference(), -3.0 / 14, 1e-9);
  EXPECT_EQ(comparison.Worst(1), std::vector<size_t>{0});
}

// From sample_step.h's picture. Rank 0: computes 0..10 and 20..24; of the rest, row and column
// transfer 10..16 and 12..20, together 10..20; 24..26 nothing. Rank 1: computes 0..12 and 20..26,
// transfers 12..20. Means of 14 and 18, 10 and 8, 2 and 0; nobody only waits.
TEST(ComparisonTest, SharesOfTheStepSumToIt) {
  const TwoRankStep step;
  const Comparison comparison = Compare(RecordOf(step, "a"), RecordOf(step, "b"));
  const StepShares& shares = comparison.a_shares;
  EXPECT_NEAR(shares.compute.value(), 16e-6, kTiny);
  EXPECT_NEAR(shares.communication.value(), 9e-6, kTiny);
  EXPECT_NEAR(shares.waiting.value(), 0, kTiny);
  EXPECT_NEAR(shares.nothing.value(), 1e-6, kTiny);
  EXPECT_NEAR((shares.compute + shares.communication + shares.waiting + shares.nothing).value(),
              comparison.step.a.value(), kTiny);
}

// As above, and in b rank 1's gemm ends at 18 and the step at 30. b's rank 0: 14 compute, 10
// transfer, 6 nothing; rank 1: 24, 2 (18..20) and 4; means 19, 6 and 5. So of a gap of -4 compute
// explains -3 and transfers +3: "-75 %" of it says nothing. If only the step changes, to 52, all of
// the gap is in none of these.
TEST(ComparisonTest, PartsOfTheGapThatCancelAreSaidInSeconds) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.spans[5].end = Time(18 * kMicrosecond);
  b.timeline.step = Time(30 * kMicrosecond);
  const std::string text = ToText(Compare(RecordOf(a, "a"), RecordOf(b, "b")), false);
  EXPECT_THAT(text, HasSubstr("16 us        19 us    -15.8 %  -3 us\n"));
  EXPECT_THAT(text, HasSubstr("9 us         6 us    +50.0 %  +3 us\n"));
  EXPECT_THAT(text, HasSubstr("1 us         5 us    -80.0 %  -4 us\n"));
  EXPECT_THAT(text, Not(HasSubstr("of the gap")));
  b = {};
  b.timeline.step = Time(52 * kMicrosecond);
  EXPECT_THAT(ToText(Compare(RecordOf(a, "a"), RecordOf(b, "b")), false),
              HasSubstr("100.0 % of the gap"));
}

TEST(ComparisonTest, GroupsAreKindsAxesAndLayers) {
  const TwoRankStep step;
  const Comparison comparison = Compare(RecordOf(step, "a"), RecordOf(step, "b"));
  ASSERT_EQ(comparison.axes.size(), 3u);
  EXPECT_EQ(comparison.axes[0].name, "row");
  EXPECT_NEAR(comparison.axes[0].total.a.value(), 8e-6, kTiny);  // 12..20 on both ranks
  EXPECT_EQ(comparison.axes[0].ops, 1u);
  EXPECT_NEAR(comparison.axes[0].median.a.value(), 8e-6, kTiny);  // of one it is that one
  ASSERT_EQ(comparison.kinds.size(), 4u);
  EXPECT_EQ(comparison.kinds[0].name, "gemm");
  EXPECT_EQ(comparison.kinds[1].name, "all-reduce");
  EXPECT_EQ(comparison.kinds[1].ops, 2u);
  EXPECT_EQ(comparison.layers.size(), 2u);  // layer 0; collectives are outside layers here
}

// Rank 1's norm (20..26) moved before its all-reduce (12..20): one of the ten pairs of rank 1 and
// none of rank 0's change places: only norm and the all-reduce.
TEST(ComparisonTest, OrderIsThatOfBegins) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.spans[8] = SpanAt(1, 3, 11 * kMicrosecond, 11 * kMicrosecond, 12 * kMicrosecond);
  const Comparison comparison = Compare(RecordOf(a, "a"), RecordOf(b, "b"));
  EXPECT_NEAR(comparison.pairs_out_of_order, 1.0 / 20, 1e-12);
  EXPECT_THAT(comparison.first_out_of_order, HasSubstr("norm"));
}

TEST(ComparisonTest, OpsThatOnlyOneHasAreCountedNotCompared) {
  const TwoRankStep a;
  TwoRankStep b;
  b.schedule.roles[0].ops[3].name = "rms norm";
  const Comparison comparison = Compare(RecordOf(a, "a"), RecordOf(b, "b"));
  EXPECT_EQ(comparison.ops.size(), 4u);
  EXPECT_EQ(comparison.only_in_a, 1u);
  EXPECT_EQ(comparison.only_in_b, 1u);
}

TEST(ComparisonTest, FoldedAndUnfoldedCompareAsEqual) {
  TwoRankStep folded;
  folded.timeline.spans.resize(5);
  folded.timeline.representative = {0, 0};
  TwoRankStep unfolded = folded;
  unfolded.timeline = Unfolded(folded.timeline);
  const Comparison comparison = Compare(RecordOf(folded, "a"), RecordOf(unfolded, "b"));
  for (const ComparedOp& op : comparison.ops)
    EXPECT_NEAR((op.time.a - op.time.b).value(), 0, kTiny);
  EXPECT_EQ(comparison.pairs_out_of_order, 0);
}

TEST(ComparisonTest, ReportsSayTheSameInThreeForms) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.step = Time(52 * kMicrosecond);
  const Comparison comparison = Compare(RecordOf(a, "simulated"), RecordOf(b, "measured"));
  EXPECT_THAT(ToText(comparison, false), HasSubstr("-50.0 %"));
  EXPECT_NEAR(ToJson(comparison)["step"]["relative_error"].get<double>(), -0.5, 1e-12);
  EXPECT_THAT(ToCsv(TableOf(comparison)), HasSubstr("step,step,,,,,,,5,2.6e-05,5.2e-05,-0.5,,\n"));
}

// Only a measured step is the truth, and only for a simulated one.
TEST(ComparisonTest, TwoWhatIfsDifferAndAPredictionErrs) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.step = Time(52 * kMicrosecond);
  Comparison comparison = Compare(RecordOf(a, "a"), RecordOf(b, "b"));
  EXPECT_FALSE(comparison.IsJudged());
  EXPECT_THAT(ToText(comparison, false), HasSubstr("A takes 50.0 % less than B."));
  EXPECT_THAT(ToText(comparison, false), Not(HasSubstr("rror")));
  EXPECT_THAT(ToText(Compare(RecordOf(b, "b"), RecordOf(a, "a")), false),
              HasSubstr("A takes 100.0 % more than B."));
  EXPECT_THAT(ToText(Compare(RecordOf(a, "a"), RecordOf(a, "b")), false),
              HasSubstr("A and B take the same: 26 us."));
  comparison.a_provenance = Provenance::kMeasured;
  EXPECT_FALSE(comparison.IsJudged());
  comparison.b_provenance = Provenance::kMeasured;
  EXPECT_FALSE(comparison.IsJudged());  // before and after
  comparison.a_provenance = Provenance::kSimulated;
  EXPECT_TRUE(comparison.IsJudged());
  EXPECT_THAT(ToText(comparison, false), HasSubstr("Errors are (A - B) / B."));
  EXPECT_THAT(ToText(comparison, false), Not(HasSubstr("A takes")));
}

// Five ops; rank 1's gemm, the first, ends 2 us later in b, and all else at the same time.
TEST(ComparisonTest, RowsAreAsManyAsWanted) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.spans[5].end = Time(18 * kMicrosecond);
  const Comparison comparison = Compare(RecordOf(a, "a"), RecordOf(b, "b"));
  EXPECT_EQ(TableOf(comparison).rows().size(), 1 + 4 + 4 + 3 + 2 + 5u);  // kinds, axes, layers
  EXPECT_EQ(TableOf(comparison, 1).rows().size(), 1 + 4 + 1 + 1 + 1 + 1u);
  EXPECT_THAT(ToText(comparison, false, 1), HasSubstr("... and 4 more (--rows all)\n"));
  EXPECT_THAT(ToText(comparison, false), Not(HasSubstr("--rows")));
  EXPECT_EQ(ToJson(comparison, 2)["worst"].size(), 2u);
}

// Two results: of the axes of both, a collective takes 2 s / 4 in a and 2 s / 8 in b, twice as
// long; less than one operation a rank, as in the mean over roles that differ, counts as one.
TEST(ComparisonTest, ResultsAreComparedAxisByAxis) {
  const auto result = [](const char* axes) {
    return JsonDocument::FromText(
        std::string(R"({"scenario": "s", "step_seconds": 4, "breakdown": {"compute_seconds": 3,
        "exposed_communication_seconds": 0.75, "idle_seconds": 0.25}, "by_axis": {)") +
            axes + "}}",
        "result.json");
  };
  const JsonDocument a = result(R"("row": {"operations": 4, "seconds": 2},
                                   "only a": {"operations": 1, "seconds": 1},
                                   "seldom": {"operations": 0.5, "seconds": 1})");
  const JsonDocument b = result(R"("only b": {"operations": 1, "seconds": 1},
                                   "row": {"operations": 8, "seconds": 2},
                                   "seldom": {"operations": 0.25, "seconds": 0.5})");
  const Comparison comparison = CompareResults(a.Root(), b.Root());
  EXPECT_EQ(comparison.step.a, Seconds(4));
  EXPECT_EQ(comparison.a_shares.compute, Seconds(3));
  EXPECT_EQ(comparison.a_shares.communication, Seconds(0.75));
  EXPECT_EQ(comparison.b_shares.nothing, Seconds(0.25));
  ASSERT_EQ(comparison.axes.size(), 2u);
  EXPECT_EQ(comparison.axes[0].name, "row");
  EXPECT_EQ(comparison.axes[0].median.a, Seconds(0.5));
  EXPECT_EQ(comparison.axes[0].median.b, Seconds(0.25));
  EXPECT_EQ(comparison.axes[0].median_difference, 1);
  EXPECT_EQ(comparison.axes[1].name, "seldom");
  EXPECT_EQ(comparison.axes[1].median.a, Seconds(1));
  EXPECT_EQ(comparison.axes[1].median.b, Seconds(0.5));
}

// Figures end below their headings, and names begin where the first column does.
TEST(ComparisonTest, TablesAreAligned) {
  const TwoRankStep a;
  TwoRankStep b;
  b.timeline.spans[5].end = Time(18 * kMicrosecond);
  const std::string text = ToText(Compare(RecordOf(a, "a"), RecordOf(b, "b")), false);
  std::istringstream lines(text);
  size_t headings = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_heading = line.find(" A ") != std::string::npos && line.ends_with("difference");
    const bool is_section = line.starts_with("By ");
    const bool is_row = line.find("gemm") == 0 || line.find("step ") == 0 || line.find("row ") == 0;
    if (is_heading || is_section) {
      ++headings;
      EXPECT_EQ(line.find("A "), 38u) << line;  // 26 of a name, 12 of a time, a blank between
      EXPECT_EQ(line.find("B "), 51u) << line;
    }
    if (!is_row || line.size() < 63) continue;
    for (const size_t end : {39u, 52u}) {
      EXPECT_EQ(line[end], ' ') << line;
      EXPECT_NE(line[end - 1], ' ') << line;
    }
    EXPECT_EQ(line[62], '%') << line;
  }
  EXPECT_EQ(headings, 4u);
}

TEST(ComparisonTest, JsonSaysWhatIsOnlyInOne) {
  const TwoRankStep a;
  TwoRankStep b;
  b.schedule.roles[0].ops[3].name = "another norm";
  const auto json = ToJson(Compare(RecordOf(a, "a"), RecordOf(b, "b")));
  EXPECT_EQ(json["only_in_a"], 1);
  EXPECT_EQ(json["only_in_b"], 1);
  EXPECT_EQ(json["gap"]["pairs_out_of_order"], 0);
  EXPECT_EQ(json["step"]["a_seconds"], 26e-6);
  // Nobody is left out of either.
  EXPECT_FALSE(json["a"].contains("ranks_left_out"));
  EXPECT_FALSE(json["b"].contains("ranks_left_out"));
}

}  // namespace comparison_test
}  // namespace rehearse
