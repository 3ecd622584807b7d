// "-" is standard input where a file is read, and standard output where one is written.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace standard_streams_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class StandardStreamsTest : public ProgramTest {
 protected:
  // With this file as standard input.
  Outcome Given(const std::string& file, const std::string& arguments) const {
    return Execute(arguments + " < '" + file + "'");
  }
};

TEST_F(StandardStreamsTest, ScenariosSchedulesAndStudiesAreRead) {
  const std::string scenario = Shipped("cpu-4d");
  const std::string file = "run '" + scenario + "' --format json";
  const auto hash = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["timeline_hash"];
  };
  EXPECT_EQ(hash(Given(scenario, "run - --format json")), hash(Execute(file)));
  EXPECT_EQ(Given(scenario, "explain -").code, 0);
  const Outcome plan = Given(scenario, "plan -");
  Write("step.json", plan.out);
  EXPECT_EQ(hash(Given("step.json", "run - --cluster local-cpu:ranks=4 --format json")),
            hash(Execute("run step.json --cluster local-cpu:ranks=4 --format json")));
  EXPECT_EQ(Given("step.json", "execute - --cluster local-cpu:ranks=4 --repeat 1").code, 0);
  Write("study.json", R"({"name": "s", "metric": "step_seconds", "base": ")" + scenario + R"(",
    "points": [{"name": "one"}]})");
  EXPECT_EQ(Given("study.json", "sweep - --format csv").out,
            Execute("sweep study.json --format csv").out);
}

TEST_F(StandardStreamsTest, PathsInsideOfItAreMeantFromTheCurrentFolder) {
  ASSERT_EQ(Execute("topology local-cpu:ranks=4 -o here.json").code, 0);
  nlohmann::ordered_json scenario = nlohmann::ordered_json::parse(ReadFile(Shipped("cpu-4d")));
  scenario["cluster"] = "here.json";
  std::filesystem::create_directories(folder_ / "elsewhere");
  Write("elsewhere/scenario.json", scenario.dump());
  EXPECT_EQ(Execute("run elsewhere/scenario.json").code, 1);  // is beside it
  const Outcome outcome = Given("elsewhere/scenario.json", "run -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(StandardStreamsTest, ClustersCalibrationsAndLogsAreRead) {
  ASSERT_EQ(Execute("topology dgx-a100 -o box.json").code, 0);
  EXPECT_EQ(Given("box.json", "topology -").out, Execute("topology box.json").out);
  EXPECT_EQ(Given("box.json", "topology - --matrix").code, 0);
  const std::string collective = "collective all-reduce -b 1M -e 64M -f 4 --cluster ";
  const Outcome table = Execute(collective + "dgx-a100");
  EXPECT_EQ(Given("box.json", collective + "-").out, Execute(collective + "box.json").out);
  EXPECT_THAT(Given("box.json", collective + "-:node.cable.bandwidth=1GBps").out,
              HasSubstr("# changed in standard input"));
  Write("nccl.log", table.out);
  const Outcome compared = Given("nccl.log", "compare - --cluster dgx-a100");
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("standard input"));
  Write("calibration.json", R"({"schema": "rehearse.calibration.v1",
    "collective_overhead": "10us", "channel_overhead": "0us"})");
  EXPECT_EQ(Given("calibration.json", collective + "dgx-a100 --calibration -").out,
            Execute(collective + "dgx-a100 --calibration calibration.json").out);
  const std::string run = "run '" + Shipped("axonn-weak-5b") + "' --format json --calibration ";
  EXPECT_EQ(nlohmann::json::parse(Given("calibration.json", run + "-").out)["timeline_hash"],
            nlohmann::json::parse(Execute(run + "calibration.json").out)["timeline_hash"]);
}

TEST_F(StandardStreamsTest, MeasuredPointsAreReadFromIt) {
  Write("points.csv", "op,m,n,k,dtype,microseconds\ngemm,4096,4096,4096,bf16,600\n");
  const std::string run = "run '" + Shipped("strategy-fsdp") + "' --format json --device-points ";
  const Outcome given = Given("points.csv", run + "-");
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(nlohmann::json::parse(given.out)["timeline_hash"],
            nlohmann::json::parse(Execute(run + "points.csv").out)["timeline_hash"]);
  EXPECT_THAT(Given("points.csv", "results show -").err,
              HasSubstr("results are SQLite, which is not read from a stream"));
}

TEST_F(StandardStreamsTest, ItIsReadOnce) {
  const Outcome twice = Given(Shipped("cpu-4d"), "run - --calibration -");
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, HasSubstr("standard input: has been read already"));
  EXPECT_EQ(Given(Shipped("cpu-4d"), "compare - -").code, 1);
}

TEST_F(StandardStreamsTest, MistakesInItAreOfStandardInput) {
  Write("bad.json", "{\n\"name\": 3}");
  EXPECT_THAT(Given("bad.json", "run -").err, HasSubstr("standard input:2: /name: found 3"));
  EXPECT_THAT(Given("/dev/null", "run -").err, HasSubstr("standard input:1: found no JSON"));
  EXPECT_THAT(Given("bad.json", "topology --import-nccl -").err, HasSubstr("standard input"));
  // Inside a file, - is a name like any other.
  Write("inner.json", R"({"name": "x", "cluster": "-"})");
  ExpectMistake("run inner.json", {"inner.json:1: /cluster: there is no file"});
}

TEST_F(StandardStreamsTest, WhatIsWrittenGoesToStandardOutput) {
  ASSERT_EQ(Execute("plan '" + Shipped("cpu-4d") + "' -o step.json").code, 0);
  const std::string step = ReadFile(folder_ / "step.json");
  for (const char* output : {"-", "/dev/stdout", "/dev/fd/1"}) {
    // The file behind standard output is not replaced: what is there already stays.
    ASSERT_EQ(Shell("(echo first; \"$rehearse\" plan '" + Shipped("cpu-4d") + "' -o " + output +
                    ") > all.txt"),
              0);
    EXPECT_EQ(ReadFile(folder_ / "all.txt"), "first\n" + step) << output;
  }
  EXPECT_EQ(Execute("topology dgx-a100 --svg -o -").out, Execute("topology dgx-a100 --svg").out);
}

TEST_F(StandardStreamsTest, WhatThereIsToReadBesideGoesToStandardError) {
  Write("nccl.log", Execute("collective all-reduce -b 1M -e 64M -f 4 --cluster dgx-a100").out);
  const Outcome fitted = Execute("compare nccl.log --cluster dgx-a100 --calibration -");
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_EQ(nlohmann::json::parse(fitted.out)["schema"], "rehearse.calibration.v1");
  EXPECT_THAT(fitted.err, HasSubstr("written to standard output"));
}

TEST_F(StandardStreamsTest, AFolderItIsNot) {
  ExpectMistake("run '" + Shipped("cpu-4d") + "' --out -", {"--out: found \"-\"", "--format json"});
}

}  // namespace standard_streams_test
}  // namespace rehearse
