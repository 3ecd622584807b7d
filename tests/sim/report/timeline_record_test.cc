#include "sim/report/timeline_record.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/report/timeline_file.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace timeline_record_test {

using ::testing::AllOf;
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

TEST(TimelineRecordTest, RunsOfRanksThatAreLeftOutAscend) {
  nlohmann::ordered_json json = SampleJson();
  const auto left_out = [&](const char* runs) {
    json["left_out"] = nlohmann::ordered_json::parse(runs);
    return json;
  };
  EXPECT_EQ(ReadBack(left_out("[]")).left_out, std::vector<uint32_t>());
  EXPECT_EQ(ReadBack(left_out("[[0, 1]]")).left_out, std::vector<uint32_t>{0});
  EXPECT_EQ(ReadBack(left_out("[[0, 2]]")).left_out, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(ReadBack(left_out("[[0, 1], [1, 1]]")).left_out, (std::vector<uint32_t>{0, 1}));
  for (const char* runs : {"[[0, 3]]", "[[2, 1]]", "[[-1, 1]]", "[[0, 0]]", "[[1, 1], [1, 1]]",
                           "[[1, 1], [0, 1]]", "[[0]]", "[[0, 1, 1]]"}) {
    EXPECT_THAT(MessageOfReading(left_out(runs)), HasSubstr("/left_out")) << runs;
  }
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

// Steps of 1, 2 and 9 ms, of which others took a part of the first two: only 9 counts, until all
// are disturbed.
TEST(TimelineRecordTest, TheMedianIsThatOfStepsThatWereLeftAlone) {
  const TwoRankStep step;
  TimelineRecord record = MakeRecord("", step.schedule, step.timeline);
  record.steps.clear();
  for (const int64_t microseconds : {1000, 2000, 9000}) {
    RecordedStep one{false, step.timeline, microseconds < 9000, microseconds < 9000 ? 0.25 : 0};
    one.timeline.step = Time(microseconds * kMicrosecond);
    record.steps.push_back(one);
  }
  const TimelineRecord again =
      ReadTimelineRecord(JsonDocument::FromText(ToJsonText(record), "timeline.json").Root());
  EXPECT_EQ(again.Median().step, Time(9000 * kMicrosecond));
  EXPECT_TRUE(again.steps[0].is_disturbed);
  EXPECT_EQ(again.steps[0].lost, 0.25);
  EXPECT_FALSE(again.steps[2].is_disturbed);
  record.steps.resize(2);
  EXPECT_EQ(record.Median().step, Time(1000 * kMicrosecond));
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
  json["roles"][0]["ops"][1]["layer"] = -2;  // -1 is none
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/roles/0/ops/1/layer"));

  json = SampleJson();
  json["steps"][0]["spans"][1] = {0, 1, 12'000'000, 11'000'000, 20'000'000};
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/steps/0/spans/1"));

  json = SampleJson();
  json["steps"][0]["spans"][1] = {0, 1, 12'000'000, 12'000'000, 11'000'000};
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/steps/0/spans/1"));

  // Runs of ranks that are left out come one after the other, and no rank twice.
  for (const char* runs : {"[[0,1],[0,1]]", "[[1,1],[0,1]]", "[[0,2],[1,1]]", "[[0,3]]"}) {
    json = SampleJson();
    json["left_out"] = nlohmann::ordered_json::parse(runs);
    EXPECT_THAT(MessageOfReading(json), HasSubstr("/left_out/")) << runs;
  }

  json = SampleJson();
  json["ranks"] = 3;
  EXPECT_THAT(MessageOfReading(json), HasSubstr("/ranks"));
}

// ---- Large files --------------------------------------------------------------------------------

class TimelineFileTest : public ::testing::Test {
 protected:
  TimelineFileTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("timeline-") + info->name() + "-" + std::to_string(getpid()) + ".json"))
                .string();
  }
  ~TimelineFileTest() override { std::filesystem::remove(path_); }

  // As if it were large.
  TimelineRecord ReadLarge(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    TimelineFile file = ReadTimelineFile(path_, 0);
    EXPECT_TRUE(file.spans.has_value());
    const JsonDocument document = JsonDocument::FromText(file.text, file.name);
    return ReadTimelineRecord(document.Root(), std::move(file.spans));
  }
  std::string Mistake(const std::string& text) const {
    try {
      ReadLarge(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(TimelineFileTest, SpansOutOfTheStreamAreThoseOfTheText) {
  nlohmann::ordered_json json = SampleJson();
  json["steps"].push_back(json["steps"][0]);
  json["steps"].insert(json["steps"].begin() + 1, json["steps"][0]);
  json["steps"][1]["spans"] = nlohmann::ordered_json::array();
  // Nothing else is taken for spans.
  json["title"] = "\"steps\": [{\"spans\": [[";
  json["given"] = {{"steps", {{{"spans", {{9, 9, 9}}}}}}, {"spans", {1}}};
  for (const int indent : {-1, 0, 3}) {
    const std::string text = "// with a \"comment\n/* [ */" + json.dump(indent);
    const TimelineRecord record = ReadLarge(text);
    ASSERT_EQ(record.steps.size(), 3u);
    EXPECT_EQ(nlohmann::json::parse(ToJsonText(record)), nlohmann::json::parse(json.dump()));
    const TwoRankStep step;
    EXPECT_EQ(HashOf(record.steps[2].timeline), HashOf(step.timeline));
  }
}

TEST_F(TimelineFileTest, OnlyListsOfSpansOfStepsAreTakenOut) {
  struct Case {
    const char* text;
    const char* rest;  // null: the text
    std::vector<size_t> spans;
  };
  const Case cases[] = {
      {R"({"steps":[{"spans":[[0,1,2,3,4]]}]})", R"({"steps":[{"spans":[]}]})", {1}},
      {R"({"steps":[{"spans":[ [0,1 ,2,3,4] , [0,2,3,4,5]
]},{"spans":[]},{"a":[[1]],"spans":[[0,1,2,3,4]],"b":{"spans":[1]}}],"spans":[[1]]})",
       R"({"steps":[{"spans":[]},{"spans":[]},{"a":[[1]],"spans":[],"b":{"spans":[1]}}],"spans":[[1]]})",
       {2, 0, 1}},
      {R"({"a":[{"spans":[[0,1,2,3,4]]}]})", nullptr, {}},
      {R"({"steps":{"a":{"spans":[[0,1,2,3,4]]}}})", nullptr, {}},
      {R"({"steps":[[{"spans":[[0,1,2,3,4]]}]]})", nullptr, {}},
      {R"({"steps":[{"a":{"spans":[[0,1,2,3,4]]}}]})", nullptr, {0}},
      {R"({"steps":[{"a":[[0,1,2,3,4]]}]})", nullptr, {0}},
      {R"({"steps":[{"spans":{"a":[[0,1,2,3,4]]}}]})", nullptr, {0}},
      {R"({"steps":[{"spans-of-a-step":[[0,1,2,3,4]]}]})", nullptr, {0}},
      {R"({"steps":[{"sp\"ans":[[0,1,2,3,4]]}]})", nullptr, {0}},
      {R"({"spans":[[0,1,2,3,4]]})", nullptr, {}},
      {R"({"a":{"steps":[{"spans":[[0,1,2,3,4]]}]}})", nullptr, {}},
      {R"([{"steps":[{"spans":[[0,1,2,3,4]]}]}])", nullptr, {}},
      {R"({"steps":[],"a":[{"spans":[[0,1,2,3,4]]}]})", nullptr, {}},
      {R"({"steps":[{}],"a":[{"spans":[[0,1,2,3,4]]}]})", nullptr, {0}},
      {R"({"steps":1,"a":[{"spans":[[0,1,2,3,4]]}]})", nullptr, {}},
      {R"(/* {"steps":[{ */{"steps":[{"spans":/**/[[0,1,2,3,4]]}]})",
       R"(/* {"steps":[{ */{"steps":[{"spans":/**/[]}]})",
       {1}},
  };
  for (const Case& one : cases) {
    std::ofstream(path_, std::ios::binary) << one.text;
    const TimelineFile file = ReadTimelineFile(path_, 0);
    EXPECT_EQ(file.text, one.rest == nullptr ? one.text : one.rest);
    std::vector<size_t> spans;
    for (const auto& of_step : file.spans.value()) spans.push_back(of_step.size());
    EXPECT_EQ(spans, one.spans) << one.text;
  }
}

TEST_F(TimelineFileTest, MistakesInLargeFilesNameTheLine) {
  // The span on line 3 is wrong, whatever stands before it.
  EXPECT_THAT(Mistake("{\"steps\": [\n{\"spans\": [[0, 1, 2, 3, 4],\n[0, 1, 2, 3, x]]}]}"),
              HasSubstr(":3: /steps/0/spans/1: expected"));
  EXPECT_THAT(Mistake("{\"steps\": [// one\n{},{\"spans\": [\n\n[0, 1, 2, 3]]}]}"),
              HasSubstr(":4: /steps/1/spans/0: expected ','"));
}

TEST_F(TimelineFileTest, MistakesInLargeFilesNameTheSpan) {
  const auto with = [](const char* span) {
    nlohmann::ordered_json json = SampleJson();
    json["steps"][0]["spans"][1] = nlohmann::ordered_json::parse(span);
    return json.dump();
  };
  EXPECT_THAT(Mistake(with("[2, 1, 0, 0, 0]")),
              AllOf(HasSubstr("/steps/0/spans/1"), HasSubstr("found rank 2, expected one of 2")));
  EXPECT_THAT(Mistake(with("[0, 99, 0, 0, 0]")), HasSubstr("found op 99"));
  EXPECT_THAT(Mistake(with("[0, 1, 5, 4, 9]")), HasSubstr("begins before it is ready"));
  EXPECT_THAT(Mistake(with("[0, 0, 0, 0, 0]")), HasSubstr("sorted by rank, then op"));
  EXPECT_THAT(Mistake(with("[0, 1, 0, 0, 9000000000000000000]")), HasSubstr("ends after the step"));
  EXPECT_THAT(Mistake(with("[0, 1, 0, 0, 9900000000000000000]")), HasSubstr("a number beyond"));
  EXPECT_THAT(Mistake(with("[0, 1, 0, -1, 0]")),
              AllOf(HasSubstr("/steps/0/spans/1"), HasSubstr("as whole numbers")));
  EXPECT_THAT(Mistake(with("[0, 1, 0]")), HasSubstr("expected ','"));
  EXPECT_THAT(Mistake(with("{}")), HasSubstr("expected '['"));
}

TEST_F(TimelineFileTest, NumbersInLargeFilesGoAsFarAsRanksAndTimesDo) {
  const auto with = [](const char* span) {
    return fmt::format(R"({{"steps": [{{"spans": [{}]}}]}})", span);
  };
  const auto first = [&](const char* span) {
    std::ofstream(path_, std::ios::binary) << with(span);
    return ReadTimelineFile(path_, 0).spans.value().at(0).at(0);
  };
  EXPECT_EQ(first("[4294967295, 0, 0, 0, 0]").rank, 4294967295u);
  EXPECT_EQ(first("[0, 4294967295, 0, 0, 0]").op, 4294967295u);
  EXPECT_EQ(first("[0, 0, 0, 0, 9223372036854775805]").end, Time(9223372036854775805));
  EXPECT_THAT(Mistake(with("[4294967296, 0, 0, 0, 0]")), HasSubstr("beyond 4294967295"));
  EXPECT_THAT(Mistake(with("[0, 0, 0, 0, 9223372036854775806]")),
              HasSubstr("beyond 9223372036854775805"));
}

TEST_F(TimelineFileTest, ALargeFileThatEndsAnywhereIsRefused) {
  const std::string whole = SampleJson().dump();
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_NE(Mistake(whole.substr(0, size)), "no error") << size;
  EXPECT_THAT(Mistake(whole.substr(0, whole.size() - 10)),
              HasSubstr("the file ends in a list of spans"));
}

// 100 MB, which no document may have.
TEST_F(TimelineFileTest, WhatWeWriteWeReadWhateverItsSize) {
  constexpr uint32_t kSpans = 2'000'000;
  TimelineRecord record;
  record.title = "large";
  RecordedOp op;
  op.name = "op";
  op.kind = "gemm";
  record.roles = {{"all", {op}, {Repeat{.begin = 0, .end = 1, .times = kSpans - 1}}}};
  record.role_of_rank = {0};
  Timeline timeline;
  timeline.ranks = 1;
  constexpr int64_t kStart = 1'000'000'000'000;
  for (uint32_t i = 0; i < kSpans; ++i)
    timeline.spans.push_back({0, i, Time(kStart + i), Time(kStart + i), Time(kStart + i + 1)});
  timeline.step = timeline.spans.back().end;
  record.steps.push_back({false, std::move(timeline)});
  std::ofstream(path_, std::ios::binary) << ToJsonText(record);
  ASSERT_GT(std::filesystem::file_size(path_), kLargestInput);
  TimelineFile file = ReadTimelineFile(path_);
  EXPECT_LT(file.text.size(), 1000u);
  const JsonDocument document = JsonDocument::FromText(file.text, file.name);
  const TimelineRecord again = ReadTimelineRecord(document.Root(), std::move(file.spans));
  EXPECT_EQ(HashOf(again.steps[0].timeline), HashOf(record.steps[0].timeline));
}

}  // namespace timeline_record_test
}  // namespace rehearse
