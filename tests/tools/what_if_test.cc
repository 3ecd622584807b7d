// What-ifs on files: --set and what follows a file's name change what a scenario names.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace what_if_test {

using ::testing::HasSubstr;
using ::testing::Not;

class WhatIfTest : public ProgramTest {
 protected:
  WhatIfTest() {
    Write("mine.json", R"({
  "name": "mine",
  "nodes": 4,
  "node": {
    "kind": "nvswitch", "devices": 4, "device": "a100-40g",
    "nvlink": {"bandwidth": "250GBps", "latency": "1us"},
    "pcie": {"bandwidth": "25GBps", "latency": "1us"},
    "nics": 4,
    "cable": {"bandwidth": "25GBps", "latency": "2us"}},
  "fabric": {"kind": "switch"}
})");
    nlohmann::ordered_json scenario =
        nlohmann::ordered_json::parse(ReadFile(Shipped("axonn-gpt20b-perlmutter")));
    scenario["cluster"] = "mine.json";
    Write("scenario.json", scenario.dump(1));
    scenario["cluster"] = "mine.json:node.nics=1";
    Write("changed.json", scenario.dump(1));
  }

  double StepOf(const std::string& arguments) const {
    const Outcome outcome = Execute("run " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out)["step_seconds"].get<double>() : 0;
  }
};

TEST_F(WhatIfTest, SetChangesTheClusterFileAndSaysWhichLine) {
  const Outcome outcome = Execute("run scenario.json --set cluster.node.nics=1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nchanged in mine.json, line 8: node.nics = 1, was 4\n"));
  const auto changes = nlohmann::json::parse(
      Execute("run scenario.json --set cluster.node.nics=1 --format json").out)["changes"];
  EXPECT_EQ(changes, nlohmann::json::parse(R"([{"file": "mine.json", "line": 8,
                                                "path": "node.nics", "was": 4, "is": 1}])"));
  EXPECT_THAT(Execute("run scenario.json").out, Not(HasSubstr("changed")));
  // A NIC for four devices takes longer than one for each.
  EXPECT_GT(StepOf("scenario.json --set cluster.node.nics=1"), 1.01 * StepOf("scenario.json"));
}

TEST_F(WhatIfTest, AllWaysToSayItAreOne) {
  const double step = StepOf("scenario.json --set cluster.node.nics=1");
  EXPECT_EQ(StepOf("changed.json"), step);
  EXPECT_EQ(StepOf("scenario.json --set cluster=mine.json:node.nics=1"), step);
  // The later one counts.
  EXPECT_EQ(StepOf("scenario.json --set cluster.node.nics=2 --set cluster.node.nics=1"), step);
  EXPECT_EQ(StepOf("changed.json --set cluster.node.nics=4"), StepOf("scenario.json"));
  EXPECT_EQ(StepOf("scenario.json --set cluster.node.nics=1 --set cluster=mine.json"),
            StepOf("scenario.json"));
}

TEST_F(WhatIfTest, APresetIsChangedWithinAsWell) {
  const std::string twice = "'" + Shipped("axonn-gpt20b-perlmutter") + "' --set strategy.data=2 ";
  EXPECT_EQ(StepOf(twice + "--set cluster.nodes=8"),
            StepOf(twice + "--set cluster=perlmutter:nodes=8"));
  ExpectMistake("run " + twice + "--set cluster.nods=8",
                {"--set: /cluster: unknown key \"nods\"", "did you mean \"nodes\"?"});
}

TEST_F(WhatIfTest, AGraphIsChangedByPlace) {
  ASSERT_EQ(Execute("topology switch:devices=2 --graph -o graph.json").code, 0);
  const Outcome outcome = Execute(
      "collective all-reduce --cluster graph.json:links.0.bandwidth=1GBps -b 64M --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(result["changes"][0]["is"], "1GBps");
  // Each of two ranks sends and receives the buffer once: 64 MiB at 1 GB/s.
  EXPECT_NEAR(result["rows"][0]["seconds"].get<double>(), 64 * 1.048576e-3, 1e-3);
  for (const std::string key : {"nodes", "node.nics"})
    ExpectMistake("topology graph.json:" + key + "=2",
                  {"lists its vertices and links one by one, so it has no \"" +
                       key.substr(0, key.find('.')) + "\"",
                   "\"edits\""});
}

TEST_F(WhatIfTest, CommandsWithAClusterOfTheirOwnChangeItToo) {
  const std::string change = " --cluster mine.json:nodes=2 ";
  EXPECT_THAT(Execute("collective all-reduce -b 1M" + change).out,
              HasSubstr("# changed in mine.json, line 3: nodes = 2, was 4\n"));
  const Outcome topology = Execute("topology mine.json:nodes=2");
  EXPECT_THAT(topology.out, HasSubstr("8 devices"));
  EXPECT_THAT(topology.err, HasSubstr("changed in mine.json, line 3: nodes = 2, was 4"));
  ASSERT_EQ(Execute("plan scenario.json --set cluster.nodes=2 --set strategy.depth=2 --allow-oom "
                    "-o step.json")
                .code,
            0);
  const Outcome run = Execute("run step.json --allow-oom" + change);
  EXPECT_THAT(run.out, HasSubstr("changed in mine.json, line 3: nodes = 2, was 4\n"));
}

TEST_F(WhatIfTest, MistakesPointAtWhoeverMadeThem) {
  ExpectMistake("run scenario.json --set cluster.node.nics=many",
                {"--set: /cluster/node/nics: found \"many\", expected a whole number"});
  ExpectMistake("run scenario.json --set cluster.node.nick=8",
                {"--set: /cluster/node: unknown key \"nick\"; did you mean \"nics\"?"});
  ExpectMistake("run scenario.json --set cluster.nodes.x=8", {"--set: /cluster/nodes: found 4"});
  ExpectMistake("run scenario.json --set cluster=mine.json:node.nick=8",
                {"--set: /cluster/node: unknown key \"nick\""});
  ExpectMistake("run changed.json --set cluster.node.pcie=null",
                {"--set: /cluster/node/pcie: found null"});
  Write("wrong.json", R"({"name": "x",
    "cluster": "mine.json:nodes=x", "model": {}, "training": {}, "strategy": {}})");
  ExpectMistake("run wrong.json", {"wrong.json:2: /cluster/nodes: found \"x\""});
  ExpectMistake("topology mine.json:nodes=x", {"mine.json:nodes=x: /nodes: found \"x\""});
  ExpectMistake("topology mine.json:node.nics=1,node.nics=2", {"\"node.nics\" appears twice"});
  ExpectMistake("topology none.json:nodes=2", {"none.json: cannot be read"});
  ExpectMistake("run scenario.json --set name.x=2", {"--set: /name: found", "an object"});
}

TEST_F(WhatIfTest, JobsAndCalibrationsAreFilesAsWell) {
  const std::string jobs = "run '" + Shipped("jobs-two-trainings") + "' --format json ";
  const auto plain = nlohmann::json::parse(Execute(jobs).out);
  const Outcome outcome = Execute(jobs + "--set jobs.0.scenario.training.batch=64");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto changed = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(changed["changes"][0]["path"], "training.batch");
  EXPECT_NE(changed["seconds"], plain["seconds"]);
  Write("calibration.json", R"({"schema": "rehearse.calibration.v1",
    "collective_overhead": "10us", "channel_overhead": "0us"})");
  const std::string with = "scenario.json --set calibration=calibration.json";
  EXPECT_GT(StepOf(with + " --set calibration.collective_overhead=10ms"), StepOf(with));
}

TEST_F(WhatIfTest, StudiesChangeFilesAndKnowWhenTheyHaveChanged) {
  Write("study.json", R"({"name": "nics", "metric": "step_seconds", "base": "scenario.json",
    "grid": [{"path": "cluster.node.nics", "values": [1, 4]}]})");
  const auto rows = [&](const std::string& more) {
    const Outcome outcome = Execute("sweep study.json --out kept --format json " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<double> metrics;
    const auto study = nlohmann::json::parse(outcome.out);
    for (const auto& point : study["points"]) metrics.push_back(point["value"].get<double>());
    return metrics;
  };
  const std::vector<double> two = rows("");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_DOUBLE_EQ(two[0], StepOf("scenario.json --set cluster.node.nics=1"));
  EXPECT_DOUBLE_EQ(two[1], StepOf("scenario.json"));
  EXPECT_EQ(rows(""), two);  // what is kept
  // The same points on another machine are not the ones that were kept.
  const std::vector<double> slower = rows("--set cluster.node.cable.bandwidth=10GBps");
  EXPECT_GT(slower[0], two[0]);
  EXPECT_EQ(rows(""), two);
  // A column of its own, like a change to the scenario itself.
  EXPECT_THAT(Execute("sweep study.json --format csv").out, HasSubstr("cluster.node.nics"));
}

TEST_F(WhatIfTest, CompareTellsWhatWasChanged) {
  ASSERT_EQ(Execute("run scenario.json --out plain").code, 0);
  ASSERT_EQ(Execute("run scenario.json --set cluster.node.nics=1 --out changed").code, 0);
  const Outcome outcome = Execute("compare plain changed");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mine.json:node.nics=1"));
}

}  // namespace what_if_test
}  // namespace rehearse
