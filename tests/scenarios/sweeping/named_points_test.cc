#include "scenarios/sweeping/named_points.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/scenarios/small_study.h"

namespace rehearse {
namespace named_points_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Eight points: fluid/depth=1/batch=8, fluid/depth=1/batch=16, fluid/depth=2/batch=8 and so on.
std::string EightPoints(const std::string& panel) {
  return R"("groups": [
      {"name": "fluid", "grid": [{"path": "strategy.depth", "values": [1, 2]},
                                 {"path": "training.batch", "values": [8, 16]}]},
      {"name": "fluid formula", "set": {"simulator.fidelity": "formula"},
       "grid": [{"path": "strategy.depth", "values": [1, 2]},
                {"path": "training.batch", "values": [8, 16]}]}],
      "pictures": [{"title": "all", )" +
         panel + "}]";
}

StudyPanel PanelOf(const std::string& points, const std::string& x = "") {
  const std::string series = R"("series": [{"name": "one", "points": )" + points + "}]";
  return SmallStudy(EightPoints(x + series)).panels.front();
}

std::vector<size_t> Meant(const std::string& points) { return PanelOf(points).series[0].points; }

std::string ErrorOf(const std::string& points, const std::string& x = "") {
  try {
    PanelOf(points, x);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(NamedPointsTest, ANameThatGoesOnMeansAllThatBeginWithIt) {
  EXPECT_THAT(Meant(R"("fluid")"), ElementsAre(0, 1, 2, 3));  // and not those of "fluid formula"
  EXPECT_THAT(Meant(R"("fluid/depth=2")"), ElementsAre(2, 3));
  EXPECT_THAT(Meant(R"(["fluid/depth=2/batch=8", "fluid formula/depth=1/"])"),
              ElementsAre(2, 4, 5));
}

TEST(NamedPointsTest, APatternMeansAllThatAreLikeIt) {
  EXPECT_THAT(Meant(R"("*/batch=16")"), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(Meant(R"("fluid/depth=?/batch=8")"), ElementsAre(0, 2));
  EXPECT_THAT(Meant(R"(["*=2*16", "fluid*1*8"])"), ElementsAre(3, 7, 0, 4));
}

TEST(NamedPointsTest, ValuesMeanPointsThatHaveThem) {
  EXPECT_THAT(Meant(R"({"where": {"strategy.depth": 2}})"), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Meant(R"({"where": {"strategy.depth": 2, "simulator.fidelity": "formula"}})"),
              ElementsAre(6, 7));
  // The base's, a part of what is changed, and what has changed parts.
  EXPECT_THAT(Meant(R"({"where": {"cluster": "perl*", "training.batch": 16}})"),
              ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(Meant(R"({"where": {"simulator": {"fidelity": "formula"}}})"),
              ElementsAre(4, 5, 6, 7));
}

TEST(NamedPointsTest, WithoutLabelsTheyAreWhatNamesDifferIn) {
  EXPECT_THAT(PanelOf(R"("fluid/depth=2")").x, ElementsAre("batch=8", "batch=16"));
  EXPECT_THAT(PanelOf(R"("fluid/depth=?/batch=8")").x, ElementsAre("depth=1", "depth=2"));
  EXPECT_THAT(PanelOf(R"(["fluid/depth=2/batch=8"])").x, ElementsAre("fluid/depth=2/batch=8"));
}

TEST(NamedPointsTest, WhatNothingMatchesIsOneMessage) {
  EXPECT_THAT(ErrorOf(R"("fluit")"),
              HasSubstr("/pictures/0/series/0/points: there is no point \"fluit\""));
  EXPECT_THAT(ErrorOf(R"(["*/batch=32"])"),
              HasSubstr("/points/0: no point's name is like \"*/batch=32\""));
  EXPECT_THAT(ErrorOf(R"({"where": {"training.batch": 32}})"),
              HasSubstr("/where/training.batch: no point has the value 32; known are 8 and 16"));
  EXPECT_THAT(ErrorOf(R"({"where": {"strategy.depth": 2, "training.batch": "dgx"}})"),
              HasSubstr("no point of these has the value \"dgx\"; known are 8 and 16"));
  EXPECT_THAT(ErrorOf(R"({"where": {}})"), HasSubstr("expected values such as"));
  EXPECT_THAT(ErrorOf(R"("fluid")", R"("x": ["1", "2"], )"),
              HasSubstr("found 4, expected 2 points, one for each x"));
}

TEST(NamedPointsTest, PatternsGoBackToTheLastStar) {
  EXPECT_TRUE(MatchesPattern("aXbXc", "a*Xc"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_TRUE(MatchesPattern("abc", "?b?*"));
  EXPECT_FALSE(MatchesPattern("abc", "ab"));
  EXPECT_FALSE(MatchesPattern("ab", "a?c"));
}

}  // namespace named_points_test
}  // namespace rehearse
