// rehearse plan, and the commands that take the file that it writes.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/schedule/schedule_json.h"
#include "tests/sim/same_schedule.h"
#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace plan_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string HashIn(const std::string& result) {
  return nlohmann::json::parse(result)["timeline_hash"];
}

std::vector<std::string> ShippedScenarios() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "scenarios"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedScenarioTest : public ::testing::TestWithParam<std::string> {};

// In this process: what is written is read as the same schedule, written again as the same bytes,
// and played to the same timeline.
TEST_P(ShippedScenarioTest, IsPlayedTheSameFromItsFile) {
  const std::string path = SourceDir() + "/scenarios/" + GetParam() + ".json";
  const JsonDocument document = JsonDocument::FromFile(path);
  const Scenario scenario = ReadScenario(document);
  if (scenario.lists_jobs) GTEST_SKIP() << "several jobs are several schedules";
  const Rehearsal wanted = Rehearse(scenario);
  const Job job = PrepareOne(scenario, "this test");
  const std::string text = WriteSchedule(job.schedule, {job.name, scenario.description});
  const JsonDocument written = JsonDocument::FromText(text, "written.json");
  const Schedule again = ReadSchedule(written.Root());
  ExpectSame(job.schedule, again);
  EXPECT_EQ(WriteSchedule(again, ReadScheduleTitle(written.Root())), text);

  // Shipped scenarios say nothing about the simulator or calibrations, but their software may: that
  // is no part of a schedule.
  auto cluster = std::make_unique<Cluster>(*scenario.cluster);
  Scenario from_file = ScenarioOf(written, std::move(cluster), {});
  from_file.lowering.nccl = scenario.lowering.nccl;
  from_file.lowering.copy_engines = scenario.lowering.copy_engines;
  const Rehearsal played = Rehearse(from_file);
  EXPECT_EQ(played.result.timeline_hash, wanted.result.timeline_hash);
  EXPECT_EQ(played.result.scenario, wanted.result.scenario);
  EXPECT_EQ(played.result.model_flops_utilization, wanted.result.model_flops_utilization);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedScenarioTest, ::testing::ValuesIn(ShippedScenarios()),
                         [](const ::testing::TestParamInfo<std::string>& scenario) {
                           std::string name = scenario.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(PlanTest, EveryShippedScenarioIsThere) { EXPECT_GE(ShippedScenarios().size(), 30u); }

TEST(PlanTest, Gpt80BOn1024RanksIsSmall) {
  const std::string path = SourceDir() + "/scenarios/axonn-weak-80b.json";
  const Job job = PrepareOne(ReadScenario(JsonDocument::FromFile(path)), "this test");
  EXPECT_EQ(job.schedule.ranks(), 1024u);
  EXPECT_LT(Gzip(WriteSchedule(job.schedule)).size(), 500'000u);
}

TEST_F(ProgramTest, APlanIsPlayedAsItsScenario) {
  const std::string scenario = "'" + Shipped("axonn-gpt20b-perlmutter") + "' ";
  ASSERT_EQ(Execute("plan " + scenario + "-o step.schedule.json.gz").code, 0);
  ASSERT_EQ(Execute("plan " + scenario + "--output step.schedule.json").code, 0);
  EXPECT_LT(fs::file_size(folder_ / "step.schedule.json.gz"),
            fs::file_size(folder_ / "step.schedule.json") / 5);
  const std::string printed = Execute("plan " + scenario).out;
  EXPECT_EQ(printed, ReadFile(folder_ / "step.schedule.json"));

  const std::string wanted = HashIn(Execute("run " + scenario + "--format json").out);
  for (const char* file : {"step.schedule.json.gz", "step.schedule.json"}) {
    const Outcome outcome =
        Execute(std::string("run ") + file + " --cluster perlmutter:nodes=4 --format json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(HashIn(outcome.out), wanted);
  }
  const Outcome explained =
      Execute("explain step.schedule.json.gz --cluster perlmutter:nodes=4 --format json");
  ASSERT_EQ(explained.code, 0) << explained.err;
}

TEST_F(ProgramTest, SetChangesWhatIsPlanned) {
  const std::string plan = "plan '" + Shipped("axonn-gpt20b-perlmutter") + "' ";
  EXPECT_NE(Execute(plan).out, Execute(plan + "--set strategy.cached_layers=0").out);
  ExpectMistake(plan + "--set strategy.cached_layer=0", {"cached_layers"});
  ExpectMistake(plan + "-o nowhere/s.json", {"cannot write nowhere/s.json"});
  const std::string by_hand = "plan '" + Shipped("schedules/two-ranks") + "' ";
  ExpectMistake(by_hand, {"is a schedule", "--cluster is needed"});
  const Outcome again = Execute(by_hand + "--cluster switch:devices=2");
  EXPECT_THAT(again.out, AllOf(HasSubstr("\"roles\": ["), HasSubstr("\"bytes\": \"64MiB\"")));
  ExpectMistake("plan", {"no scenario given", "rehearse plan scenarios/"});
  EXPECT_THAT(Execute("plan --help").out,
              AllOf(HasSubstr("usage: rehearse plan"), HasSubstr("-o")));
}

TEST_F(ProgramTest, APlanIsExecuted) {
  ASSERT_EQ(Execute("plan '" + Shipped("cpu-data-parallel") + "' -o s.json.gz").code, 0);
  const Outcome outcome =
      Execute("execute s.json.gz --cluster local-cpu:ranks=2 --repeat 1 --warmup 0");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Executed on 2 ranks"));
}

TEST_F(ProgramTest, SchedulesByHandAreSimulatedAndExecuted) {
  for (const std::string name : {"two-ranks", "pipeline"}) {
    const std::string file = "'" + Shipped("schedules/" + name) + "' --cluster ";
    const Outcome run = Execute("run " + file + "switch:devices=2 --format json");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(nlohmann::json::parse(run.out)["scenario"], name);
    const Outcome executed = Execute("execute " + file + "local-cpu --repeat 1 --warmup 0");
    ASSERT_EQ(executed.code, 0) << executed.err;
    EXPECT_THAT(executed.out, AllOf(HasSubstr("executed by waiting"), HasSubstr("made up")));
  }
  ExpectMistake("execute '" + Shipped("schedules/two-ranks") + "' --cluster local-cpu --check",
                {"\"two-ranks\" is a schedule"});
}

// Mistakes that only show on the machine are reported where they were made: in the op, or in the
// pin.
TEST_F(ProgramTest, ACollectiveThatCannotRunSoIsNamedWhereItIsAskedFor) {
  std::string schedule = ReadFile(Shipped("schedules/two-ranks"));
  const std::string sum = "\"collective\": \"all-reduce\"";
  schedule.replace(schedule.find(sum), sum.size(), sum + ", \"algorithm\": \"bucket\"");
  Write("by-hand.json", schedule);
  ExpectMistake("run by-hand.json --cluster switch:devices=2",
                {"by-hand.json: /ops/2: all-reduce on \"data\": algorithm \"bucket\" cannot do "
                 "all-reduce here: it needs a torus",
                 "expected another"});
  schedule = ReadFile(Shipped("cpu-data-parallel"));
  const std::string name = "\"name\":";
  schedule.replace(schedule.find(name), name.size(),
                   "\"simulator\": {\"collectives\": [{\"kind\": \"all-reduce\", \"protocol\": "
                   "\"simple\"}]}, " +
                       name);
  Write("pinned.json", schedule);
  ExpectMistake("run pinned.json", {"pinned.json:2: /simulator/collectives/0: all-reduce on ",
                                    "protocol \"simple\" is not available", "expected \"none\""});
}

TEST_F(ProgramTest, MessagesAreWrittenBesideTheScheduleOrAlone) {
  const Outcome alone = Execute("plan '" + Shipped("cpu-4d") + "' --goal step.goal");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("step.goal   GOAL of 4 ranks: "), HasSubstr("messages")));
  const std::string goal = ReadFile(folder_ / "step.goal");
  EXPECT_TRUE(goal.starts_with("num_ranks 4\nrank 0 {\nl0: calc ")) << goal.substr(0, 60);
  EXPECT_FALSE(fs::exists(folder_ / "-"));

  const Outcome both = Execute("plan '" + Shipped("cpu-4d") + "' --goal again.goal -o step.json");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(ReadFile(folder_ / "again.goal"), goal);
  EXPECT_EQ(Execute("run step.json --cluster local-cpu:ranks=4").code, 0);
}

// What the model says, given back as if it had been measured, is the same step.
TEST_F(ProgramTest, ProductsCanBeMeasuredAndGivenBack) {
  const std::string scenario = "'" + Shipped("axonn-gpt20b-perlmutter") + "'";
  const Outcome listed = Execute("plan " + scenario + " --products products.csv");
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.out, "");
  const std::string products = ReadFile(folder_ / "products.csv");
  EXPECT_THAT(products, HasSubstr("dtype,microseconds,count\ngemm,"));
  EXPECT_THAT(products, HasSubstr("\nattention,"));
  const Outcome plain = Execute("run " + scenario + " --format json");
  const Outcome again = Execute("run " + scenario + " --format json --device-points products.csv");
  ASSERT_EQ(again.code, 0) << again.err;
  const auto before = nlohmann::json::parse(plain.out);
  const auto after = nlohmann::json::parse(again.out);
  EXPECT_NEAR(after["step_seconds"].get<double>() / before["step_seconds"].get<double>(), 1, 1e-9);
  const auto points = std::count(products.begin(), products.end(), '\n') - 1;
  const std::string note = after["notes"].dump();
  EXPECT_THAT(note, HasSubstr("device points: " + std::to_string(points) + " of " +
                              std::to_string(points) + " are those of "));
  EXPECT_THAT(note, Not(HasSubstr("No op")));
}

TEST_F(ProgramTest, PointsThatMatchNothingAreNamed) {
  Write("mine.csv",
        "op,m,n,k,dtype,microseconds\ngemm,4096,8192,8192,bf16,2500\ngemm,64,64,64,bf16,9\n");
  const Outcome outcome =
      Execute("run '" + Shipped("axonn-gpt20b-perlmutter") + "' --device-points mine.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("device points: 0 of 2 are those of 0 of the step's "));
  EXPECT_THAT(outcome.out, HasSubstr("gemm 64 x 64 x 64 bf16"));
  EXPECT_THAT(outcome.out, HasSubstr("rehearse plan --products"));
}

TEST_F(ProgramTest, ForSwitchesThatAddThereAreNoMessages) {
  Write("sum.json", R"({"name": "sum", "cluster": "dgx-h100", "model": {"preset": "gpt-3.6b"},
    "simulator": {"collectives": [{"kind": "all-reduce", "algorithm": "nvls"}]},
    "training": {"batch": 8, "sequence": 256, "recomputation": "none"},
    "strategy": {"kind": "megatron", "tensor": 8, "data": 1, "sequence_parallel": false,
    "overlap_all_reduce": true, "overlap_gradients": false, "distributed_optimizer": false}})");
  ExpectMistake("plan sum.json --goal sum.goal",
                {"GOAL has no word for switches that add", "nvls"});
  EXPECT_FALSE(fs::exists(folder_ / "sum.goal"));
}

}  // namespace plan_test
}  // namespace rehearse
