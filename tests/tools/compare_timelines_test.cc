// rehearse compare for timelines and results, as its user meets it.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

TEST_F(ProgramTest, CompareSaysThatAScenarioIsLikeItself) {
  const std::string scenario = "'" + Shipped("axonn-fig3-a") + "'";
  const Outcome outcome = Execute("compare " + scenario + " " + scenario + " --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "rehearse.comparison.v1");
  EXPECT_EQ(json["step"]["relative_error"], 0);
  EXPECT_EQ(json["only_in_a"], 0);
}

// Optimisation B takes dX's all-reduces off the path: the step is shorter and the exposed
// communication explains it.
TEST_F(ProgramTest, CompareExplainsWhatAnOptimisationChanges) {
  const Outcome outcome = Execute("compare '" + Shipped("axonn-fig3-ab") + "' '" +
                                  Shipped("axonn-fig3-a") + "' --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_LT(json["step"]["relative_error"].get<double>(), 0);
  const double step =
      json["step"]["a_seconds"].get<double>() - json["step"]["b_seconds"].get<double>();
  double explained = 0;
  for (const auto& [name, part] : json["gap"].items()) {
    if (part.is_object()) explained += part["difference"].get<double>();
  }
  EXPECT_NEAR(explained, step, 1e-9);
}

TEST_F(ProgramTest, WhatRunWritesCanBeComparedWithTheScenario) {
  const std::string scenario = "'" + Shipped("axonn-fig3-a") + "'";
  ASSERT_EQ(Execute("run " + scenario + " --out out").code, 0);
  const Outcome outcome = Execute("compare out " + scenario + " --format csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("group,name,ops,a_seconds,b_seconds,relative_error\nstep,"));
  const Outcome results = Execute("compare out/result.json out/result.json");
  ASSERT_EQ(results.code, 0) << results.err;
  EXPECT_THAT(results.out, HasSubstr("By axis"));
}

TEST_F(ProgramTest, CompareRefusesWhatItDoesNotKnow) {
  Write("words.txt", "hello\n");
  ExpectMistake("compare words.txt words.txt", {"words.txt", "nothing that can be compared"});
  Write("newer.json", R"({"schema": "rehearse.timeline.v9"})");
  ExpectMistake("compare newer.json newer.json", {"newer.json", "rehearse.timeline.v9"});
  ExpectMistake("compare '" + Shipped("axonn-fig3-a") + "'", {"a timeline", "nothing"});
}

TEST_F(ProgramTest, TrustAndCalibrateExplainMistakes) {
  ExpectMistake("trust", {"no calibration given"});
  Write("newer.json", R"({"schema": "rehearse.calibration.v9"})");
  ExpectMistake("trust newer.json", {"rehearse.calibration.v9", "rehearse.calibration.v1"});
  ExpectMistake("calibrate --backend tpu", {"tpu", "cpu"});
  ExpectMistake("calibrate --ranks 2,x", {"--ranks", "x"});
}

}  // namespace
}  // namespace rehearse
