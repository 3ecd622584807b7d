// What a page says about a step agrees with the step.
#include "scenarios/reporting/reported_run.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/reporting/page_columns.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace reported_run_test {

Scenario Small() {
  return ReadScenario(
      JsonDocument::FromFile(std::string(SourceDir()) + "/scenarios/cpu-pipeline.json"));
}

TEST(ReportedRunTest, EveryCommunicationThatWaitedNamesWhatReleasedIt) {
  const ReportedRun run = ReportScenario(Small(), {});
  const std::vector<Span>& spans = run.record.Median().spans;
  size_t communicates = 0;
  size_t released = 0;
  for (const Span& span : spans) {
    const uint32_t role = run.record.role_of_rank[span.rank];
    const ReportedOp& op = run.roles[role].ops[run.record.roles[role].PlaceAt(span.op)];
    if (!run.classes[op.span_class].communication) continue;
    ASSERT_LT(communicates, run.released_by.size());
    const uint32_t by = run.released_by[communicates++];
    if (by == kNoSpan) continue;
    ++released;
    EXPECT_LE(spans[by].end, span.begin);
  }
  EXPECT_EQ(communicates, run.released_by.size());
  EXPECT_GT(released, 0u);
}

TEST(ReportedRunTest, ThePathLeadsFromTheBeginToTheEndOfTheStep) {
  const ReportedRun run = ReportScenario(Small(), {});
  ASSERT_FALSE(run.path.empty());
  EXPECT_EQ(run.path.front().begin, Time());
  EXPECT_EQ(run.path.back().end, run.record.Median().step);
  for (size_t i = 1; i < run.path.size(); ++i) EXPECT_EQ(run.path[i].begin, run.path[i - 1].end);
}

TEST(ReportedRunTest, MemoryPeaksAtMostWhereTheRoleDoes) {
  // MemoryOf() counts in list order; in time, with overlap, a buffer may outlive what comes after
  // it in the list, so the peaks need not be equal. Both begin and end with what stays.
  const ReportedRun run = ReportScenario(Small(), {});
  ASSERT_FALSE(run.memory.empty());
  for (const MemoryCurve& curve : run.memory) {
    EXPECT_GT(curve.parameters, 0);
    ASSERT_FALSE(curve.points.empty());
    EXPECT_NEAR(curve.points.back().activations, 0, 1);
    EXPECT_NEAR(curve.points.back().buffers, 0, 1);
    for (const MemoryAt& point : curve.points) EXPECT_GE(point.activations, -1);
  }
}

TEST(ReportedRunTest, SpansThatCrossALinkCarryItsBytesAtMost) {
  const ReportedRun run = ReportScenario(Small(), {});
  ASSERT_FALSE(run.links.empty());
  for (const ReportedLink& link : run.links) {
    EXPECT_FALSE(link.spans.empty()) << link.record.name;
    EXPECT_TRUE(std::is_sorted(link.spans.begin(), link.spans.end()));
    EXPECT_LT(link.spans.back(), run.record.Median().spans.size());
  }
}

TEST(PageColumnsTest, LettersAreThoseOfRfc4648) {
  // Its section 10.
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

}  // namespace reported_run_test
}  // namespace rehearse
