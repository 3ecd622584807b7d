#include "scenarios/sweeping/study.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "tests/scenarios/small_study.h"
#include "tests/support/places.h"

namespace rehearse {
namespace study_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const Study& study) {
  std::vector<std::string> names;
  for (const StudyPoint& point : study.points) names.push_back(point.name);
  return names;
}

std::string ErrorOf(const std::string& rest) {
  try {
    SmallStudy(rest);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(StudyTest, AGridIsEveryCombinationTheLastAxisFastest) {
  const Study study = SmallStudy(R"("grid": [
      {"path": "strategy.column", "values": [1, 2]},
      {"choices": [{"name": "short", "set": {"training.sequence": 128}},
                   {"name": "long", "set": {"training.sequence": 512}}]}])");
  EXPECT_THAT(Names(study),
              ElementsAre("column=1/short", "column=1/long", "column=2/short", "column=2/long"));
  const nlohmann::json scenario = ScenariosOf(study, study.points[3], std::nullopt)[0].value();
  EXPECT_EQ(scenario["strategy"]["column"], 2);
  EXPECT_EQ(scenario["training"]["sequence"], 512);
}

TEST(StudyTest, PointsAndGridMultiplyInsideTheirGroup) {
  const Study study = SmallStudy(R"("groups": [
      {"name": "a", "points": [{"name": "x"}, {"name": "y"}],
       "grid": [{"path": "training.batch", "values": [8, 16]}]},
      {"name": "b", "points": [{"name": "x"}]}])");
  EXPECT_THAT(Names(study),
              ElementsAre("a/x/batch=8", "a/x/batch=16", "a/y/batch=8", "a/y/batch=16", "b/x"));
}

TEST(StudyTest, LaterChangesWin) {
  // Study, group, calibration, point, all points.
  Study study = SmallStudy(R"("set": {"name": "study", "training.batch": 1},
      "groups": [{"name": "g", "set": {"training.batch": 2},
        "calibration": {"point": "p", "from": 3, "to": 4, "set": {"training.batch": "{value}"}},
        "points": [{"name": "p", "published": 1},
                   {"name": "q", "set": {"training.batch": 5}}]}])");
  const auto batch = [&](size_t point, std::optional<double> value) {
    return ScenariosOf(study, study.points[point], value)[0].value()["training"]["batch"];
  };
  EXPECT_EQ(batch(0, std::nullopt), 2);
  EXPECT_EQ(batch(0, 3.5), 3.5);
  EXPECT_EQ(batch(1, 3.5), 5);
  ChangeAllPoints(study, "training.batch=6");
  EXPECT_EQ(batch(1, 3.5), 6);
  EXPECT_EQ(ScenariosOf(study, study.points[0], 3.5)[0].value()["name"], "study");
}

TEST(StudyTest, TheCalibratedValueIsWrittenIntoTexts) {
  const Study study = SmallStudy(R"("calibration": {"point": "p", "from": 0.5, "to": 2,
      "set": {"edits": [{"devices": "**", "compute": "{value}x"}]}},
      "points": [{"name": "p", "published": 1}])");
  EXPECT_EQ(ScenariosOf(study, study.points[0], 0.75)[0].value()["edits"][0]["compute"], "0.75x");
}

TEST(StudyTest, AMetricIsANumberOfTheResultTimesAFactor) {
  const auto result = nlohmann::json::parse(R"({"by_axis": {"row": {"seconds": 0.25}}, "a": "b"})");
  EXPECT_EQ(StudyMetric({"by_axis.row.seconds", 1000, "ms"}).Of(result), 250);
  EXPECT_EQ(StudyMetric({"by_axis.column.seconds", 1, ""}).Of(result), std::nullopt);
  EXPECT_EQ(StudyMetric({"a", 1, ""}).Of(result), std::nullopt);
  EXPECT_EQ(StudyMetric({"by_axis", 1, ""}).Of(result), std::nullopt);
}

TEST(StudyTest, AMetricMayBeLessThatOfTheSamePointWithChanges) {
  const Study study = EightLayersStudy();
  const auto scenarios = ScenariosOf(study, study.points[0], std::nullopt);
  ASSERT_EQ(scenarios.size(), 2u);
  EXPECT_EQ(scenarios[0].value()["model"]["layers"], 10);
  EXPECT_EQ(scenarios[1].value()["model"]["layers"], 2);
  StudyMetric metric = study.metric;
  metric.times = 0.125;
  EXPECT_EQ(metric.Of(nlohmann::json::parse(
                R"({"memory": {"parameters": 90}, "minus": {"memory": {"parameters": 50}}})")),
            5);
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "a"}], "columns": [
                          {"value": "step_seconds", "minus": {"model.layers": 1}}])"),
              HasSubstr("minus"));
}

TEST(StudyTest, EveryShippedStudyIsOfScenariosThatCanBeRead) {
  size_t points = 0;
  const auto folder = std::filesystem::path(SourceDir()) / "scenarios" / "studies";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Study study = ReadStudy(JsonDocument::FromFile(entry.path().string()));
    EXPECT_EQ(study.name, entry.path().stem().string());
    EXPECT_NE(study.description, "") << study.name;
    for (const StudyPoint& point : study.points) {
      const auto& calibration = study.groups[point.group].calibration;
      const auto value = calibration ? std::optional(calibration->from) : std::nullopt;
      if (!point.may_fail) {
        for (const JsonDocument& scenario : ScenariosOf(study, point, value)) {
          EXPECT_NO_THROW(ReadScenario(scenario)) << study.name << " " << point.name;
        }
      }
      ++points;
    }
  }
  EXPECT_GT(points, 20u);
}

TEST(StudyTest, EveryMistakeSaysWhereAndWhatInstead) {
  EXPECT_THAT(ErrorOf(R"("point": [])"), HasSubstr("did you mean \"points\"?"));
  EXPECT_THAT(ErrorOf(R"("points": [])"), HasSubstr("the study has no points"));
  EXPECT_THAT(ErrorOf(R"("columns": [])"), HasSubstr("missing key \"points\" or \"grid\""));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p"}, {"name": "p"}])"),
              AllOf(HasSubstr("study.json:"), HasSubstr("/points/1"), HasSubstr("two points")));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p", "relative_to": "qq"}, {"name": "q"}])"),
              AllOf(HasSubstr("/points/0/relative_to"), HasSubstr("did you mean \"q\"?")));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "a"}, {"name": "b", "relative_to": "a"},
                                    {"name": "c", "relative_to": "b"}])"),
              HasSubstr("itself relative to another"));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p"}], "orders": [["p"]])"),
              AllOf(HasSubstr("/orders/0"), HasSubstr("at least two points")));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p"}], "grid": [{"path": "a", "values": []}])"),
              HasSubstr("an axis of a grid needs values"));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p", "published": 1}],
                         "grid": [{"path": "a", "values": [1]}])"),
              HasSubstr("cannot have a published figure"));
  EXPECT_THAT(ErrorOf(R"("points": [{"name": "p", "set": {"a=b": 1}}])"),
              HasSubstr("\"a=b\" is no path"));
  EXPECT_THAT(ErrorOf(R"("groups": [{"name": "g", "points": [{"name": "p"}]},
                                    {"name": "g", "points": [{"name": "p"}]}])"),
              HasSubstr("two groups \"g\""));
}

TEST(StudyTest, ANumberThatNoResultHasIsRefusedAtItsPlace) {
  const auto error_of = [](const std::string& metric, const std::string& columns) {
    try {
      ReadStudy(JsonDocument::FromText(R"({"name": "s", "points": [{"name": "p"}], "metric": )" +
                                           metric + R"(, "columns": )" + columns + R"(, "base": )" +
                                           kSmallBase + "}",
                                       "study.json"));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of(R"("memory.activations")", R"(["by_axis.row.exposed_seconds"])"), "no error");
  EXPECT_THAT(error_of(R"("step_second")", "[]"),
              AllOf(HasSubstr("study.json:"), HasSubstr("/metric: "),
                    HasSubstr("did you mean \"step_seconds\"?")));
  EXPECT_THAT(error_of(R"({"value": "by_axis.row.secs"})", "[]"),
              AllOf(HasSubstr("/metric/value: "), HasSubstr("\"by_axis.row.seconds\"?")));
  EXPECT_THAT(error_of(R"("ranks")", R"(["ranks", "breakdwn.idle_seconds"])"),
              AllOf(HasSubstr("/columns/1: "), HasSubstr("\"breakdown.idle_seconds\"?")));
  EXPECT_THAT(
      error_of(R"("x")", "[]"),
      AllOf(HasSubstr("which is not a number of the result; known are ranks, step_seconds, "),
            HasSubstr("by_axis.*.bytes")));
  EXPECT_THAT(error_of(R"("timeline_hash")", "[]"), HasSubstr("which is not a number"));  // a text
}

TEST(StudyTest, ACalibrationNeedsAFigureAndAPlaceForItsValue) {
  const std::string points = R"(, "points": [{"name": "p"}, {"name": "q", "published": 1}])";
  EXPECT_THAT(ErrorOf(R"("calibration": {"point": "p", "from": 0, "to": 1,
                         "set": {"a": "{value}"}})" +
                      points),
              HasSubstr("has no published figure"));
  EXPECT_THAT(
      ErrorOf(R"("calibration": {"point": "q", "from": 0, "to": 1, "set": {"a": 1}})" + points),
      HasSubstr("nothing here contains {value}"));
  EXPECT_THAT(ErrorOf(R"("calibration": {"point": "r", "from": 0, "to": 1,
                         "set": {"a": "{value}"}})" +
                      points),
              HasSubstr("there is no point \"r\" to calibrate with"));
  EXPECT_THAT(ErrorOf(R"("calibration": {"point": "q", "from": 1, "to": 1,
                         "set": {"a": "{value}"}})" +
                      points),
              HasSubstr("a number above \"from\""));
}

}  // namespace study_test
}  // namespace rehearse
