// The numbers of each lesson's answer, which are worked out by hand, are those of the simulation.
#include "scenarios/reporting/lesson.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/reporting/live_controls.h"
#include "sim/base/error.h"
#include "tests/support/places.h"

namespace rehearse {
namespace lesson_test {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return SourceDir() + "/scenarios/lessons/" + name + ".json";
}
std::string TextOf(const std::string& name) {
  std::ifstream file(PathOf(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::vector<Lesson> Lessons() { return ReadLessons(JsonDocument::FromFile(PathOf("lessons"))); }

double StepOf(const Lesson& lesson, bool changed) {
  const Rehearsal rehearsal = Rehearse(ReadLessonScenario(lesson, TextOf(lesson.name), changed));
  return ToSeconds(rehearsal.timeline.step).value();
}

TEST(LessonTest, TheStepIsAsTheAnswerSaysBeforeAndAfterTheChange) {
  const std::vector<Lesson> lessons = Lessons();
  EXPECT_EQ(lessons.size(), 13u);
  for (const Lesson& lesson : lessons) {
    SCOPED_TRACE(lesson.name);
    constexpr double kPicosecond = 1e-12;  // what a time is counted in
    const auto within = [&](Seconds by_hand) {
      return by_hand.value() * lesson.within + 2 * kPicosecond;
    };
    EXPECT_NEAR(StepOf(lesson, false), lesson.before.value(), within(lesson.before));
    EXPECT_NEAR(StepOf(lesson, true), lesson.after.value(), within(lesson.after));
  }
}

// Cables twice as fast: half the time for what a link carries, and the same latencies. The closed
// forms of README.md, for other numbers than those that the lessons show.
TEST(LessonTest, TheClosedFormsHoldForOtherNumbersToo) {
  const std::vector<Lesson> lessons = Lessons();
  const auto step = [&](size_t number, std::vector<std::string> set) {
    Lesson lesson = lessons[number];
    lesson.set = std::move(set);
    return StepOf(lesson, true) * 1e3;
  };
  constexpr double kClose = 1e-8;  // milliseconds
  // 2(p-1)/p · 100 MB / 25 GB/s + 2(p-1) · 2 us
  for (const int p : {2, 3, 5, 6}) {
    const double by_hand = 2.0 * (p - 1) / p * 4 + 2 * (p - 1) * 0.002;
    EXPECT_NEAR(step(0, {"cluster.devices=" + std::to_string(p),
                         "jobs.0.schedule.ranks=" + std::to_string(p)}),
                by_hand, kClose)
        << p;
  }
  // Slower gathers than layers: L g + c.
  std::vector<std::string> slow = lessons[3].set;
  slow.emplace_back("edits=[{\"links\": \"**\", \"bandwidth\": \"0.5x\"}]");
  EXPECT_NEAR(step(3, slow), 4 * 4.002 + 3, kClose);
  // dW hides 4 of the 6 ms that the sum takes at half the bandwidth.
  slow = lessons[2].set;
  slow.emplace_back("edits=[{\"links\": \"**\", \"bandwidth\": \"0.5x\"}]");
  EXPECT_NEAR(step(2, slow), 2 * (4 + 6.004), kClose);
}

TEST(LessonTest, WhatIsWrongInTheirTextsIsTold) {
  const auto mistake = [](const std::string& text) -> std::string {
    try {
      ReadLessons(JsonDocument::FromText(text, "l.json"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(mistake(R"({"schema": "rehearse.lessons.v1", "lessons": [{"nmae": "a"}]})"),
              HasSubstr("did you mean \"name\""));
  EXPECT_THAT(mistake(R"({"schema": "rehearse.lessons.v2", "lessons": []})"),
              HasSubstr("rehearse.lessons.v1"));
}

// Links of each kind can be changed, and the strategy's switches.
TEST(LiveControlsTest, AreWhatTheScenarioHas) {
  const Scenario scenario =
      ReadScenario(JsonDocument::FromFile(SourceDir() + "/scenarios/axonn-gpt20b-perlmutter.json"));
  const nlohmann::ordered_json controls = LiveControls(scenario);
  std::vector<std::string> labels;
  for (const auto& control : controls)
    if (control.contains("label")) labels.push_back(control["label"].get<std::string>());
  for (const char* wanted : {"NVLink bandwidth", "Network bandwidth", "overlap all gather", "Grid",
                             "Micro-batches", "Recomputation", "NIC that fails", "Compute"})
    EXPECT_THAT(labels, ::testing::Contains(wanted));
  for (const auto& control : controls) {
    if (control["kind"] != "grid") continue;
    for (const auto& value : control["values"]) {
      int64_t product = 1;
      for (const auto& size : value) product *= size.get<int64_t>();
      EXPECT_EQ(product, 16);
    }
  }
}

std::vector<std::string> ValuesOf(const nlohmann::ordered_json& controls,
                                  const std::string& label) {
  for (const auto& control : controls)
    if (control.value("label", "") == label)
      return control["values"].get<std::vector<std::string>>();
  return {};
}

TEST(LiveControlsTest, APipelineOffersAllOrdersThatTakeItsStages) {
  JsonDocument document =
      JsonDocument::FromFile(SourceDir() + "/scenarios/lessons/zero-bubble.json");
  EXPECT_EQ(ValuesOf(LiveControls(ReadScenario(document)), "Order of the pipeline").size(), 11u);
  document.Set("pipeline.schedule=interleaved");
  document.Set("pipeline.virtual=2");
  const std::vector<std::string> orders =
      ValuesOf(LiveControls(ReadScenario(document)), "Order of the pipeline");
  EXPECT_THAT(orders, ::testing::Contains("zb-v"));
  EXPECT_THAT(orders, ::testing::Not(::testing::Contains("gpipe")));
}

// Ends of messages and what is alike but for a number are turned together.
TEST(LiveControlsTest, AScheduleWrittenByHandHasItsTimesAndSizes) {
  const nlohmann::json schedule =
      JsonDocument::FromFile(SourceDir() + "/scenarios/schedules/pipeline.json").value();
  const nlohmann::ordered_json controls = LiveControls(Scenario(), schedule);
  ASSERT_EQ(controls.size(), 3u);  // forward, send and receive, backward
  EXPECT_EQ(controls[0]["label"], "forward, time");
  EXPECT_EQ(controls[0]["value"], "2ms");
  EXPECT_EQ(controls[0]["paths"].size(), 6u);
  EXPECT_EQ(controls[1]["paths"].size(), 12u);
  EXPECT_EQ(controls[1]["paths"][0], "roles.0.ops.1.bytes");
  const Scenario lesson =
      ReadScenario(JsonDocument::FromFile(SourceDir() + "/scenarios/lessons/prefetch.json"));
  bool found = false;
  for (const auto& control : LiveControls(lesson))
    found = found || (control["kind"] == "amount" && control["label"] == "layer, time");
  EXPECT_TRUE(found);
}

}  // namespace lesson_test
}  // namespace rehearse
