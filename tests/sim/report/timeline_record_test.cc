#include "sim/report/timeline_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace timeline_record_test {

using ::testing::HasSubstr;

TimelineRecord ReadBack(const nlohmann::ordered_json& json) {
  return ReadTimelineRecord(JsonDocument::FromText(json.dump(), "timeline.json").Root());
}

nlohmann::ordered_json SampleJson() {
  const TwoRankStep step;
  return nlohmann::ordered_json::parse(
      ToJsonText(MakeRecord("two ranks", step.schedule, step.timeline)));
}

std::string MessageOfReading(const nlohmann::ordered_json& json) {
  try {
    ReadBack(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TimelineRecordTest, WhatIsWrittenIsReadBackWithTheSameHash) {
  const TwoRankStep step;
  const TimelineRecord record = ReadBack(SampleJson());
  EXPECT_EQ(record.title, "two ranks");
  EXPECT_EQ(record.ranks(), 2u);
  ASSERT_EQ(record.steps.size(), 1u);
  EXPECT_EQ(HashOf(record.steps[0].timeline), HashOf(step.timeline));
  EXPECT_EQ(nlohmann::ordered_json::parse(ToJsonText(record)), SampleJson());
}

TEST(TimelineRecordTest, FoldedTimelinesStayFolded) {
  TwoRankStep step;
  // Rank 1 behaves as rank 0: five spans instead of ten.
  step.timeline.spans.resize(5);
  step.timeline.representative = {0, 0};
  const TimelineRecord record = ReadBack(
      nlohmann::ordered_json::parse(ToJsonText(MakeRecord("", step.schedule, step.timeline))));
  EXPECT_EQ(record.steps[0].timeline.spans.size(), 5u);
  EXPECT_EQ(record.steps[0].timeline.SpansOf(1), record.steps[0].timeline.SpansOf(0));
}

TEST(TimelineRecordTest, RanksThatAreLeftOutStandInTheFile) {
  TwoRankStep step;
  TimelineRecord record = MakeRecord("", step.schedule, step.timeline);
  record.left_out = {1};
  const auto json = nlohmann::ordered_json::parse(ToJsonText(record));
  EXPECT_EQ(json["left_out"].dump(), "[[1,1]]");
  EXPECT_EQ(ReadBack(json).left_out, std::vector<uint32_t>{1});
}

// The second op four times, for micro-batches 0 to 3: kept once, and told apart by position.
TEST(TimelineRecordTest, OpsThatRepeatStandOnce) {
  TwoRankStep step;
  Role& role = step.schedule.roles[0];
  role.ops.resize(2);
  role.repeats = {{.begin = 1, .end = 2, .times = 3}};
  step.timeline.spans = {SpanAt(0, 0, 0, 0, 1), SpanAt(0, 1, 1, 1, 2), SpanAt(0, 2, 2, 2, 3),
                         SpanAt(0, 4, 4, 4, 5)};
  const auto json =
      nlohmann::ordered_json::parse(ToJsonText(MakeRecord("", step.schedule, step.timeline)));
  EXPECT_EQ(json["roles"][0]["ops"].size(), 2u);
  EXPECT_EQ(json["roles"][0]["repeats"].dump(), "[[1,2,3,1]]");
  const TimelineRecord record = ReadBack(json);
  const std::vector<Span>& spans = record.steps[0].timeline.spans;
  EXPECT_EQ(record.OpOf(spans[3]).name, "all-reduce y");
  EXPECT_EQ(record.MicroBatchOf(spans[1]), 0);
  EXPECT_EQ(record.MicroBatchOf(spans[3]), 3);
  auto wrong = json;
  wrong["steps"][0]["spans"][3][1] = 5;  // positions are 0 to 4
  EXPECT_THAT(MessageOfReading(wrong), HasSubstr("/steps/0/spans/3/1"));
}

// Older files lack it, and are read as before.
TEST(TimelineRecordTest, WhatWasGivenIsKept) {
  auto json = SampleJson();
  EXPECT_TRUE(ReadBack(json).given.is_null());
  json["given"] = {{"cluster", "dgx-a100"}};
  EXPECT_EQ(ReadBack(json).given["cluster"], "dgx-a100");
  EXPECT_THAT(ToJsonText(ReadBack(json)), HasSubstr(R"("given":{"cluster":"dgx-a100"})"));
}

TEST(TimelineRecordTest, OpsKeepWhatTheyAre) {
  const TimelineRecord record = ReadBack(SampleJson());
  const RecordedOp& reduce = record.roles[0].ops[1];
  EXPECT_EQ(reduce.name, "all-reduce y");
  EXPECT_EQ(reduce.kind, "all-reduce");
  EXPECT_EQ(reduce.axis, "row");
  EXPECT_EQ(record.roles[0].ops[0].kind, "gemm");
  EXPECT_EQ(record.roles[0].ops[3].phase, Phase::kBackward);
}

// Steps of 5, 1, 9, 3 µs, the first of them a warm-up: of 1, 3 and 9 the median is 3.
TEST(TimelineRecordTest, TheMedianLeavesWarmUpsOut) {
  const TwoRankStep step;
  TimelineRecord record = MakeRecord("", step.schedule, step.timeline);
  record.steps.clear();
  for (const int64_t microseconds : {5, 1, 9, 3}) {
    RecordedStep one{microseconds == 5, step.timeline};
    one.timeline.step = Time(microseconds * kMicrosecond);
    record.steps.push_back(one);
  }
  EXPECT_EQ(record.Median().step, Time(3 * kMicrosecond));
  record.steps.resize(1);
  EXPECT_EQ(record.Median().step, Time(5 * kMicrosecond));  // better than nothing
}

TEST(TimelineRecordTest, WhatDoesNotFitTogetherIsRefusedWhereItStands) {
  auto json = SampleJson();
  json["schema"] = "rehearse.timeline.v2";
  EXPECT_THAT(MessageOfReading(json), HasSubstr("rehearse.timeline.v1"));

  json = SampleJson();
  json["steps"][0]["spans"][3][1] = 17;  // there are ops 0 to 4
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/steps/0/spans/3/1"));

  json = SampleJson();
  json["steps"][0]["spans"][0][4] = int64_t{27} * kMicrosecond;  // the step ends at 26
  EXPECT_THAT(MessageOfReading(json), HasSubstr("ends after the step"));

  json = SampleJson();
  std::swap(json["steps"][0]["spans"][0], json["steps"][0]["spans"][1]);
  EXPECT_THAT(MessageOfReading(json), HasSubstr("sorted"));

  json = SampleJson();
  json["ranks"] = 3;
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/ranks"));
}

}  // namespace timeline_record_test
}  // namespace rehearse
