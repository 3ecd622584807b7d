#include "scenarios/sweeping/study_picture.h"

#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/scenarios/small_study.h"

namespace rehearse {
namespace study_picture_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Four points, published are 2 and 8 s of two of them, and half of "c" for "d".
Study FourPoints(const std::string& picture) {
  return SmallStudy(R"("points": [{"name": "a", "published": 2}, {"name": "b", "published": 8},
      {"name": "c"}, {"name": "d", "published": 0.5, "relative_to": "c"}],
      "pictures": [)" +
                    picture + "]");
}

// As if they had been played.
Sweep Took(const std::vector<double>& seconds) {
  Sweep sweep;
  for (const double value : seconds) {
    PointOutcome& point = sweep.points.emplace_back();
    point.result = {{"step_seconds", value}};
    if (value == 0) point.error = "impossible";
  }
  return sweep;
}

std::vector<double> NumbersOf(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<double> numbers;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
    numbers.push_back(std::stod((*at)[1]));
  return numbers;
}

std::vector<double> HeightsOfBars(const std::string& picture) {
  return NumbersOf(picture,
                   R"re(<rect x="[^"]*" y="[^"]*" width="[^"]*" height="([0-9.]+)" fill="#[^f])re");
}

TEST(StudyPictureTest, BarsAreAsHighAsTheirValues) {
  const Study study = FourPoints(R"({"title": "all", "kind": "bars", "x": ["1", "2"],
      "series": [{"name": "one", "points": ["a", "b"]}, {"name": "two", "points": ["c", "d"]}]})");
  const std::string picture = StudySvg(study, Took({1, 2, 4, 3}));
  const std::vector<double> heights = HeightsOfBars(picture);
  ASSERT_EQ(heights.size(), 4u);
  EXPECT_NEAR(heights[1] / heights[0], 2, 1e-3);  // to a hundredth of a pixel
  EXPECT_NEAR(heights[2] / heights[0], 4, 1e-3);
  EXPECT_NEAR(heights[3] / heights[0], 3, 1e-3);
  EXPECT_THAT(picture, HasSubstr("<title>a: 1, published 2</title>"));
  // A ratio is no number of seconds.
  EXPECT_THAT(picture, HasSubstr("<title>d: 3</title>"));
  EXPECT_THAT(picture, HasSubstr(">published</text>"));
}

TEST(StudyPictureTest, OnALogarithmicAxisDoublingIsADistance) {
  const Study study = FourPoints(R"({"title": "all", "log_y": true, "x": ["1", "2", "3"],
      "series": [{"name": "one", "points": ["a", "b", "c"]}]})");
  const std::string picture = StudySvg(study, Took({1, 2, 4, 3}));
  const std::vector<double> heights =
      NumbersOf(picture, R"re(<circle cx="[^"]*" cy="([0-9.]+)" r)re");
  ASSERT_EQ(heights.size(), 3u);
  EXPECT_GT(heights[0], heights[1]);
  EXPECT_NEAR(heights[0] - heights[1], heights[1] - heights[2], 0.02);
}

TEST(StudyPictureTest, RatiosAreToThePointThatAnotherIsRelativeTo) {
  const Study study = FourPoints(R"({"title": "half", "kind": "bars", "ratios": true,
      "x": ["1", "2"], "series": [{"name": "one", "points": ["c", "d"]}]})");
  const std::string picture = StudySvg(study, Took({1, 2, 4, 3}));
  EXPECT_THAT(picture, HasSubstr("<title>c: 1</title>"));
  EXPECT_THAT(picture, HasSubstr("<title>d: 0.75, published 0.5</title>"));
  EXPECT_THAT(NumbersOf(picture, "<title>d: ([0-9.]+)"),
              ElementsAre(DoubleNear(0.75, 1e-9), DoubleNear(0.75, 1e-9)));  // bar and diamond
}

TEST(StudyPictureTest, AMapIsDarkestWhereItIsMost) {
  const Study study = FourPoints(R"({"title": "map", "kind": "map", "x": ["1", "2"],
      "series": [{"name": "one", "points": ["a", "b"]}, {"name": "two", "points": ["c", "d"]}]})");
  const std::string picture = StudySvg(study, Took({1, 2, 4, 3}));
  // 0.1 for the least, 0.9 for the most.
  EXPECT_THAT(NumbersOf(picture, R"re(fill-opacity="([0-9.]+)")re"),
              ElementsAre(0.1, DoubleNear(0.1 + 0.8 / 3, 1e-3), 0.9, DoubleNear(0.633, 1e-3)));
  EXPECT_THAT(picture, Not(HasSubstr(">published</text>")));
}

TEST(StudyPictureTest, WhatFailedIsNotDrawn) {
  const Study study = FourPoints(R"({"title": "all", "x": ["1", "2"],
      "series": [{"name": "one", "points": ["a", "b"]}]})");
  const std::string picture = StudySvg(study, Took({1, 0, 4, 3}));
  EXPECT_EQ(NumbersOf(picture, R"re(<circle cx="([0-9.]+)")re").size(), 1u);
  EXPECT_THAT(picture, HasSubstr("<title>b: none, published 8</title>"));  // the paper's is
}

TEST(StudyPictureTest, AMistakeInAPictureIsNamed) {
  const auto mistake = [](const std::string& picture) -> std::string {
    try {
      FourPoints(picture);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(mistake(R"({"title": "t", "x": ["1", "2"],
                          "series": [{"name": "s", "points": ["a"]}]})"),
              HasSubstr("2 points, one for each x"));
  EXPECT_THAT(mistake(R"({"title": "t", "x": ["1"], "series": [{"name": "s", "points": ["e"]}]})"),
              HasSubstr("there is no point \"e\""));
  EXPECT_THAT(mistake(R"({"title": "t", "x": ["1"], "ratios": true,
                          "series": [{"name": "s", "points": ["a"]}]})"),
              HasSubstr("\"a\" is in no ratio"));
  EXPECT_THAT(mistake(R"({"title": "t", "x": [], "series": [{"name": "s", "points": []}]})"),
              HasSubstr("at least one label"));
  EXPECT_THAT(mistake(R"({"title": "t", "x": ["1"], "series": []})"),
              HasSubstr("at least one series"));
  EXPECT_THAT(mistake(R"({"title": "t", "kind": "pie", "x": ["1"],
                          "series": [{"name": "s", "points": ["a"]}]})"),
              HasSubstr("\"pie\""));
}

}  // namespace study_picture_test
}  // namespace rehearse
