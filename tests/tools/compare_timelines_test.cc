// rehearse compare for timelines and results, as its user meets it.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace compare_timelines_test {

using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(outcome.out, HasSubstr("list,name,kind,axis,phase,layer,micro_batch,occurrence,ops,"
                                     "a_seconds,b_seconds,relative_difference,"));
  const Outcome results = Execute("compare out/result.json out/result.json");
  ASSERT_EQ(results.code, 0) << results.err;
  EXPECT_THAT(results.out, HasSubstr("By axis"));
}

// Two what-ifs of one scenario: their files and what was set tell them apart, in timelines, in
// results and in what run prints.
TEST_F(ProgramTest, CompareTellsWhatIfsOfOneNameApart) {
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  ASSERT_EQ(Execute("run " + scenario + " --out a").code, 0);
  ASSERT_EQ(Execute("run " + scenario + " --set strategy.overlap_all_reduce=false --out b").code,
            0);
  for (const std::string files : {"a b", "a/result.json b/result.json"}) {
    const Outcome outcome = Execute("compare " + files);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("A  cpu-4d (simulated)   a/"));
    EXPECT_THAT(outcome.out, HasSubstr("B  cpu-4d (simulated)   b/"));
    EXPECT_THAT(outcome.out, HasSubstr("How their scenarios differ\nstrategy.overlap_all_reduce"));
    EXPECT_THAT(outcome.out, HasSubstr("A true; B false\n"));
    EXPECT_THAT(outcome.out, HasSubstr("than B. Differences are (A - B) / B.\n"));
  }
  const auto json = nlohmann::json::parse(Execute("compare a " + scenario + " --format json").out);
  EXPECT_EQ(json["given"], nlohmann::json::array());
  EXPECT_EQ(json["b_is_truth"], false);
  EXPECT_EQ(json["a"]["file"], "a/timeline.json");
  EXPECT_THAT(Execute("compare a " + scenario).out, HasSubstr("Their scenarios are the same.\n"));
}

TEST_F(ProgramTest, CompareWarnsWhereTheWorkIsAnother) {
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  ASSERT_EQ(Execute("run " + scenario + " --out a").code, 0);
  ASSERT_EQ(Execute("run " + scenario + " --set training.batch=16 --out b").code, 0);
  const Outcome timelines = Execute("compare a b");
  EXPECT_EQ(timelines.code, 0);
  EXPECT_THAT(timelines.err, HasSubstr("steps of different work: training.batch: 8 and 16"));
  const Outcome results = Execute("compare a/result.json b/result.json --format json");
  EXPECT_EQ(nlohmann::json::parse(results.out)["warnings"].size(), 2u);  // the tokens, too
  EXPECT_THAT(results.err, HasSubstr("tokens"));
  const Outcome ranks = Execute("compare a '" + Shipped("cpu-4d-8") + "'");
  EXPECT_EQ(ranks.code, 0);
  EXPECT_THAT(ranks.err, HasSubstr("A is a step of 4 ranks, B of 8"));
}

// An older file knows nothing of it, and is compared as before.
TEST_F(ProgramTest, CompareTakesFilesThatDoNotTellWhatWasGiven) {
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  ASSERT_EQ(Execute("run " + scenario + " --out new").code, 0);
  for (const char* name : {"result", "timeline"}) {
    auto json =
        nlohmann::ordered_json::parse(ReadFile(folder_ / "new" / (std::string(name) + ".json")));
    ASSERT_EQ(json.erase("given"), 1u);
    Write(std::string("old-") + name + ".json", json.dump());
    const Outcome outcome =
        Execute(std::string("compare old-") + name + ".json new/" + name + ".json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("A and B take the same"));
    EXPECT_THAT(outcome.out, HasSubstr("differ is not recorded in one of these files"));
  }
}

TEST_F(ProgramTest, CompareErrsOnlyAgainstWhatWasMeasured) {
  const std::string scenario = "'" + Shipped("cpu-data-parallel") + "'";
  ASSERT_EQ(Execute("execute " + scenario + " --warmup 0 --repeat 1 --out run").code, 0);
  const Outcome outcome = Execute("compare " + scenario + " run");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Errors are (A - B) / B.\n\nTheir scenarios are the same."));
  EXPECT_THAT(outcome.out, HasSubstr("(measured)"));
  ASSERT_EQ(Execute("run " + scenario + " --out simulated").code, 0);
  EXPECT_THAT(Execute("compare simulated/result.json run/execution.json").out,
              HasSubstr("Errors are (A - B) / B."));
  EXPECT_THAT(Execute("compare run " + scenario).out, Not(HasSubstr("Errors")));
}

// The one step says that others took a third of it.
TEST_F(ProgramTest, CompareSaysWhereOthersDisturbedWhatWasMeasured) {
  const std::string scenario = "'" + Shipped("cpu-data-parallel") + "'";
  ASSERT_EQ(Execute("execute " + scenario + " --warmup 0 --repeat 1 --out run").code, 0);
  auto json = nlohmann::ordered_json::parse(ReadFile(folder_ / "run/timeline.json"));
  json["steps"][0]["disturbed"] = false;
  json["steps"][0]["lost"] = 0;
  Write("alone.json", json.dump());
  EXPECT_THAT(Execute("compare " + scenario + " alone.json").err, Not(HasSubstr("other programs")));
  json["steps"][0]["disturbed"] = true;
  json["steps"][0]["lost"] = 0.33;
  Write("disturbed.json", json.dump());
  EXPECT_THAT(Execute("compare " + scenario + " disturbed.json").err,
              HasSubstr("other programs took 33 % of the time of B's step, and left none of its "
                        "steps alone: differences are not the model's"));
}

// Less than the clock's tick is no time.
TEST_F(ProgramTest, CompareRefusesTimesOfNothing) {
  ASSERT_EQ(Execute("run '" + Shipped("cpu-4d") + "' --out run").code, 0);
  auto json = nlohmann::ordered_json::parse(ReadFile(folder_ / "run/result.json"));
  json["step_seconds"] = 1e-314;
  Write("nothing.json", json.dump());
  ExpectMistake("compare run/result.json nothing.json",
                {"nothing.json", "/step_seconds", "expected 0 or at least 1e-12 s"});
}

TEST_F(ProgramTest, CompareTakesAsManyRowsAsWanted) {
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  const std::string both = "compare " + scenario + " " + scenario;
  EXPECT_THAT(Execute(both + " --rows 1").out, HasSubstr("more (--rows all)"));
  EXPECT_THAT(Execute(both + " --rows all").out, Not(HasSubstr("more (--rows all)")));
  ExpectMistake(both + " --rows none", {"--rows", "none"});
  ExpectMistake(both + " --rows 0", {"--rows", "0"});
}

TEST_F(ProgramTest, CompareRefusesWhatItDoesNotKnow) {
  Write("words.txt", "hello\n");
  ExpectMistake("compare words.txt words.txt", {"words.txt", "cannot be compared; expected"});
  Write("newer.json", R"({"schema": "rehearse.timeline.v9"})");
  ExpectMistake("compare newer.json newer.json", {"newer.json", "rehearse.timeline.v9"});
  ExpectMistake("compare '" + Shipped("axonn-fig3-a") + "'", {"only a timeline"});
}

TEST_F(ProgramTest, TrustAndCalibrateExplainMistakes) {
  ExpectMistake("trust", {"no calibration given"});
  Write("newer.json", R"({"schema": "rehearse.calibration.v9"})");
  ExpectMistake("trust newer.json", {"rehearse.calibration.v9", "rehearse.calibration.v1"});
  ExpectMistake("calibrate --backend tpu", {"tpu", "cpu"});
  ExpectMistake("calibrate --ranks 2,x", {"--ranks", "x"});
  Write("other.json", R"({"schema": "rehearse.calibration.v1", "host_cores": 2,
    "about": {"machine": {"processor": "Z80", "cores": 1}}})");
  ExpectMistake("calibrate --again other.json",
                {"other.json", "was measured on Z80, 1 core, but this machine is"});
}

}  // namespace compare_timelines_test
}  // namespace rehearse
