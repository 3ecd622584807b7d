// "rehearse sweep" as its user meets it.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace sweep_test {

using SweepCommandTest = ProgramTest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Study() {
  return std::string(R"({"name": "fig3", "metric": "step_seconds", "base": ")") + SourceDir() +
         R"(/scenarios/axonn-gpt20b-perlmutter.json", "columns": [{"value":
  "breakdown.exposed_communication_seconds", "times": 1000, "unit": "exposed, ms"}],
  "points": [{"name": "A to D", "set": {"strategy.cached_layers": 0}},
             {"name": "A to E", "relative_to": "A to D", "published": 0.9101}]})";
}

TEST_F(SweepCommandTest, EveryFormatHasThePoints) {
  Write("study.json", Study());
  const Outcome text = Execute("sweep study.json");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("1 of 1 within 15 %"));
  const Outcome csv = Execute("sweep study.json --format csv --threads 1");
  EXPECT_THAT(csv.out, StartsWith("point,strategy.cached_layers,status,reason,step_seconds,"
                                  "relative_to,ratio,published,relative_error,\"exposed, ms\"\n"
                                  "A to D,0,done,,"));
  const Outcome markdown = Execute("sweep study.json --format markdown");
  EXPECT_THAT(markdown.out, HasSubstr("| --- | ---: |"));
  const Outcome json = Execute("sweep study.json --format json");
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["schema"], "rehearse.study.v1");
  EXPECT_EQ(parsed["points"][1]["name"], "A to E");
  EXPECT_NEAR(parsed["points"][1]["error"].get<double>(),
              parsed["points"][1]["value"].get<double>() / 0.9101 - 1, 1e-12);
}

TEST_F(SweepCommandTest, OutKeepsOneFileAPointAndGoesOn) {
  Write("study.json", Study());
  ASSERT_EQ(Execute("sweep study.json --out kept").code, 0);
  const auto file = folder_ / "kept" / "A%20to%20E.json";
  const auto kept = nlohmann::json::parse(ReadFile(file));
  EXPECT_EQ(kept["schema"], "rehearse.point.v2");
  EXPECT_EQ(kept["result"]["schema"], "rehearse.result.v1");
  const auto written = std::filesystem::last_write_time(file);
  ASSERT_EQ(Execute("sweep study.json --out kept").code, 0);
  EXPECT_EQ(std::filesystem::last_write_time(file), written);
}

TEST_F(SweepCommandTest, WhatNoPointCanDoIsAMistakeOfTheStudy) {
  const std::string head =
      R"({"name": "s", "metric": "step_seconds", "base": ")" + Shipped("cpu-4d") + "\", ";
  Write("grid.json", head + R"("grid": [{"path": "training.batsch", "values": [8, 16]}]})");
  ExpectMistake("sweep grid.json", {"grid.json", "no point is possible", "batsch"});
  Write("column.json",
        head + R"("columns": ["breakdwn.idle_seconds"], "points": [{"name": "a"}]})");
  ExpectMistake("sweep column.json", {"column.json", "/columns/0", "breakdwn.idle_seconds",
                                      "did you mean \"breakdown.idle_seconds\"?"});
}

TEST_F(SweepCommandTest, ADamagedPointIsSimulatedAgainAndThatIsSaid) {
  Write("study.json", Study());
  const Outcome first = Execute("sweep study.json --out kept --format csv");
  const auto file = folder_ / "kept" / "A%20to%20D.json";
  auto kept = nlohmann::json::parse(ReadFile(file));
  kept["result"]["step_seconds"] = -1;
  Write("kept/A%20to%20D.json", kept.dump());
  const Outcome second = Execute("sweep study.json --out kept --format csv");
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(second.err,
              AllOf(StartsWith("rehearse: kept/A%20to%20D.json: "), HasSubstr("simulated again")));
  EXPECT_EQ(Execute("sweep study.json --out kept --format csv").err, "");
}

TEST_F(SweepCommandTest, MoreThreadsThanThereIsRoomForDoNoHarm) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  std::string values;
  for (int batch = 16; batch < 16 * 401; batch += 16)
    values += (values.empty() ? "" : ", ") + std::to_string(batch);
  Write("wide.json", R"({"name": "wide", "metric": "step_seconds", "base": ")" + Shipped("cpu-4d") +
                         R"(", "grid": [{"path": "training.batch", "values": [)" + values + "]}]}");
  // 400 stacks of 8 MiB alone would be more than 3 GB.
  EXPECT_EQ(Shell("ulimit -v 3000000; \"$rehearse\" sweep wide.json --threads 400 --set "
                  "simulator.fidelity=formula --format csv > many.csv 2> err.txt"),
            0)
      << ReadFile(folder_ / "err.txt");
  EXPECT_EQ(ReadFile(folder_ / "many.csv"),
            Execute("sweep wide.json --set simulator.fidelity=formula --format csv").out);
}

TEST_F(SweepCommandTest, SetChangesEveryPoint) {
  Write("study.json", Study());
  const auto step = [&](const std::string& arguments) {
    return nlohmann::json::parse(
               Execute("sweep study.json --format json " + arguments).out)["points"][0]["value"]
        .get<double>();
  };
  EXPECT_GT(step("--set training.batch=32"), 1.5 * step(""));
}

TEST_F(SweepCommandTest, MistakesAreOneClearLine) {
  Write("study.json", Study());
  ExpectMistake("sweep", {"no study given", "usage: rehearse sweep STUDY"});
  ExpectMistake("sweep nothing.json", {"nothing.json"});
  ExpectMistake("sweep study.json --format yaml", {"--format", "yaml", "markdown"});
  ExpectMistake("sweep study.json --threads -1", {"--threads", "-1"});
  ExpectMistake("sweep study.json --again", {"neither --out nor --results"});
  ExpectMistake("sweep study.json --set training.batch", {"--set", "path=value"});
  ExpectMistake("sweep study.json --out ''", {"--out: found \"\", expected a folder"});
  Write("bad.json", R"({"name": "x", "metric": "step_seconds", "base": "study.json",
                        "points": [{"name": "p"}]})");
  ExpectMistake("sweep bad.json",
                {"bad.json:2", "/points/0", "study.json", "found a study, expected a scenario"});
}

}  // namespace sweep_test
}  // namespace rehearse
