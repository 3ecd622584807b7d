// Jobs that share a cluster: what they take from each other, by hand.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"

namespace rehearse {
namespace jobs_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Two machines of two GPUs. Each machine reaches the switch by one NIC of 10 GB/s, or each GPU by
// its own ("0-2" and "1-3" then share none); inside a machine 100 GB/s. No latencies, no overheads.
Json Machines(bool share_nics) {
  Json vertices = Json::array();
  Json links = Json::array();
  const auto link = [&](const std::string& a, const std::string& b, const char* bandwidth) {
    links.push_back(
        {{"between", {a, b}}, {"kind", "network"}, {"bandwidth", bandwidth}, {"latency", "0us"}});
  };
  vertices.push_back({{"name", "switch"}, {"kind", "switch"}});
  for (const std::string node : {"n0", "n1"}) {
    for (const std::string i : {"0", "1"}) {
      vertices.push_back({{"name", node + "/gpu" + i}, {"kind", "device"}, {"node", node}});
      if (!share_nics || i == "0") {
        vertices.push_back({{"name", node + "/nic" + i}, {"kind", "nic"}, {"node", node}});
        link(node + "/nic" + i, "switch", "10GBps");
      }
      link(node + "/gpu" + i, node + "/nic" + (share_nics ? "0" : i), "100GBps");
    }
    link(node + "/gpu0", node + "/gpu1", "100GBps");
  }
  return {{"name", "machines"},
          {"device", "a100-40g"},
          {"vertices", vertices},
          {"links", links},
          {"step_overhead", "0us"}};
}

// All that happens is that rank 0 sends 1 GB to rank 1: 0.1 s at 10 GB/s.
Json Sending(const std::string& name) {
  return {
      {"schema", "rehearse.schedule.v1"},
      {"name", name},
      {"ranks", 2},
      {"role_of_rank", Json::array({Json::array({"first", 1}), Json::array({"second", 1})})},
      {"communicators", {{{"name", "pair"}, {"ranks", "all"}}}},
      {"roles",
       {{{"name", "first"},
         {"ops", {{{"name", "send"}, {"send_to", 1}, {"communicator", "pair"}, {"bytes", "1GB"}}}}},
        {{"name", "second"},
         {"ops",
          {{{"name", "receive"},
            {"receive_from", 0},
            {"communicator", "pair"},
            {"bytes", "1GB"}}}}}}}};
}

struct Asked {
  Json placement;
  std::string start = "0s";
  int repeat = 1;
};

Scenario Together(const std::vector<Asked>& jobs, bool share_nics = true) {
  Json json = {{"name", "together"}, {"cluster", Machines(share_nics)}, {"jobs", Json::array()}};
  for (const Asked& job : jobs) {
    json["jobs"].push_back({{"schedule", Sending("job")},
                            {"placement", job.placement},
                            {"start", job.start},
                            {"repeat", job.repeat}});
  }
  return ReadScenario(JsonDocument::FromText(json.dump(), "together.json"));
}

std::vector<JobResult> Played(const Scenario& scenario) { return Rehearse(scenario).jobs->jobs; }

constexpr double kExact = 1e-9;

// 2 GB through one NIC of 10 GB/s: both end after 0.2 s; alone, either would end after 0.1 s.
TEST(JobsTest, TwoJobsOnOneNicAreEachHalfAsFast) {
  const auto jobs = Played(Together({{"0,2"}, {"1,3"}}));
  ASSERT_EQ(jobs.size(), 2u);
  for (const JobResult& job : jobs) {
    EXPECT_NEAR(job.result.step.value(), 0.2, kExact);
    EXPECT_NEAR(job.alone.value(), 0.1, kExact);
    EXPECT_NEAR(job.BySharing(), 2, kExact);
  }
  EXPECT_EQ(jobs[0].result.scenario, "job");
  EXPECT_EQ(jobs[1].result.scenario, "job (2)");
}

TEST(JobsTest, TwoJobsOnNicsOfTheirOwnDoNotNoticeEachOther) {
  for (const JobResult& job : Played(Together({{"0,2"}, {"1,3"}}, /*share_nics=*/false))) {
    EXPECT_NEAR(job.result.step.value(), 0.1, kExact);
    EXPECT_NEAR(job.BySharing(), 1, kExact);
  }
}

// The first is alone for 50 ms and moves 0.5 GB; its other half takes 100 ms at half the rate,
// until 150 ms. Then the second still has half to move, which takes 50 ms alone, until 200 ms: 150
// ms since its start.
TEST(JobsTest, AJobThatStartsLaterSharesFromThenOn) {
  const Rehearsal rehearsal = Rehearse(Together({{"0,2"}, {"1,3", "50ms"}}));
  const auto& jobs = rehearsal.jobs->jobs;
  EXPECT_NEAR(jobs[0].result.step.value(), 0.15, kExact);
  EXPECT_NEAR(jobs[1].result.step.value(), 0.15, kExact);
  EXPECT_NEAR(jobs[0].BySharing(), 1.5, kExact);
  EXPECT_NEAR(jobs[1].BySharing(), 1.5, kExact);
  EXPECT_NEAR(rehearsal.result.step.value(), 0.2, kExact);
  // Waiting is no work.
  EXPECT_EQ(rehearsal.result.breakdown.compute, Seconds(0));
}

// The first's two steps: 1 GB at half the rate beside the second, which ends at 0.2 s; 1 GB alone.
TEST(JobsTest, StepsAreRepeatedBackToBack) {
  const auto jobs = Played(Together({{"0,2", "0s", 2}, {"1,3"}}));
  ASSERT_EQ(jobs[0].steps.size(), 2u);
  EXPECT_NEAR(jobs[0].steps[0].value(), 0.2, kExact);
  EXPECT_NEAR(jobs[0].steps[1].value(), 0.1, kExact);
  EXPECT_NEAR(jobs[0].result.step.value(), 0.15, kExact);
  EXPECT_NEAR(jobs[0].alone.value(), 0.1, kExact);
  EXPECT_NEAR(jobs[0].BySharing(), 1.5, kExact);
  EXPECT_NEAR(jobs[1].BySharing(), 2, kExact);
}

// "block" puts both ranks in one machine, 100 GB/s apart; "round-robin" in two, 10 GB/s apart.
TEST(JobsTest, PlacementDecidesWhatLiesBetweenRanks) {
  EXPECT_NEAR(Played(Together({{"block"}}))[0].result.step.value(), 0.01, kExact);
  EXPECT_NEAR(Played(Together({{"round-robin"}}))[0].result.step.value(), 0.1, kExact);
  // The other direction is free: full duplex.
  for (const JobResult& job : Played(Together({{"0,2"}, {{3, 1}}})))
    EXPECT_NEAR(job.BySharing(), 1, kExact);
}

TEST(JobsTest, FoldedAndUnfoldedAgree) {
  Scenario scenario = Together({{"0,2", "10ms", 3}, {"1,3", "50ms"}});
  const Rehearsal folded = Rehearse(scenario);
  scenario.lowering.fold = false;
  EXPECT_EQ(Rehearse(scenario).result.timeline_hash, folded.result.timeline_hash);
}

// Sixteen GPUs of either machine for each job would do (0.295 and 0.829 s per step).
TEST(JobsTest, TheGoldenHashOfTheShippedJobsHolds) {
  const auto hash = [](const std::string& protocol) {
    JsonDocument document =
        JsonDocument::FromFile(SourceDir() + "/scenarios/jobs-two-trainings.json");
    document.Set("simulator.protocol=" + protocol);
    document.Set("simulator.slowdown={}");  // figures of families come and go
    return Rehearse(ReadScenario(document)).result.timeline_hash;
  };
  EXPECT_EQ(hash("none"), "15c227fb0f6dcb3a");
  EXPECT_EQ(hash("auto"), "dcdc2026984cb695");
}

// Jobs that train, in every fidelity, on a machine that perturbs them: the checks accept the joint
// schedule, and a job alone on all devices is the same as the scenario on its own.
TEST(JobsTest, AJobByItselfIsItsScenario) {
  for (const char* fidelity : {"formula", "fluid", "step"}) {
    const Json small = Json::parse(testing::kSmall);
    const Json jobs = {{"name", "one"},
                       {"cluster", small["cluster"]},
                       {"simulator", {{"fidelity", fidelity}}},
                       {"jobs", {{{"scenario", small}, {"placement", "block"}}}}};
    const Rehearsal one = Rehearse(ReadScenario(JsonDocument::FromText(jobs.dump(), "one.json")));
    const Rehearsal own = testing::Play({std::string("simulator.fidelity=") + fidelity});
    EXPECT_EQ(one.result.timeline_hash, own.result.timeline_hash);
    EXPECT_EQ(one.jobs->jobs[0].BySharing(), 1);
    Json result = ToJson(one.jobs->jobs[0].result);
    Json expected = ToJson(own.result);
    for (Json* json : {&result, &expected}) {
      json->erase("trust");  // of scenarios
      json->erase("links");
      json->erase("simulator");
      json->erase("changes");  // the fidelity, which one of them says in its file
    }
    EXPECT_EQ(result, expected);
  }
}

// Its ranks take the first eight of sixteen devices, or any eight that are placed alike.
TEST(PlacementTest, AScenarioMayLeaveDevicesSpare) {
  const std::vector<std::string> four = {"cluster=perlmutter:nodes=4"};
  const auto with = [&](const std::string& placement) {
    std::vector<std::string> changes = four;
    changes.push_back("placement=" + placement);
    return testing::Play(changes);
  };
  const Rehearsal block = with("block");
  EXPECT_EQ(block.result.ranks, 8u);
  EXPECT_EQ(block.schedule.ranks(), 8u);
  EXPECT_EQ(block.result.step, testing::Play().result.step);
  EXPECT_EQ(block.result.timeline_hash, testing::Play().result.timeline_hash);
  EXPECT_EQ(with("\"8-15\"").result.timeline_hash, block.result.timeline_hash);
  EXPECT_EQ(with("\"8-15\"").names.node_of_rank[0], "node2");
  // Column and row pairs are inside a machine with blocks, and apart in turns.
  EXPECT_GT(with("round-robin").result.step, block.result.step);
}

TEST(PlacementTest, RoundRobinTakesMachinesInTurns) {
  const Scenario scenario =
      testing::ReadSmall({"cluster=perlmutter:nodes=3", "placement=round-robin"});
  EXPECT_THAT(scenario.jobs[0].placement, ElementsAre(0, 4, 8, 1, 5, 9, 2, 6));
}

// Data parallelism on two machines of 8: a replica on each rank.
std::vector<std::string> Replicas(const std::string& replicas) {
  return {"cluster=dgx-h100:nodes=2",  "placement=even",
          "strategy.column=1",         "strategy.row=1",
          "strategy.depth=1",          "strategy.data=" + replicas,
          "training.batch=" + replicas};
}

TEST(PlacementTest, EvenTakesEquallyManyOfEachMachine) {
  EXPECT_THAT(testing::ReadSmall(Replicas("8")).jobs[0].placement,
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(testing::ReadSmall(Replicas("10")).jobs[0].placement,
              ElementsAre(0, 1, 2, 3, 4, 8, 9, 10, 11, 12));
  EXPECT_THAT(testing::ErrorOf(Replicas("11")),
              HasSubstr("/placement: 11 ranks cannot be spread evenly over the free devices"));
}

TEST(PlacementTest, MistakesAreNamed) {
  using testing::ErrorOf;
  EXPECT_THAT(ErrorOf({"cluster=perlmutter:nodes=3"}),
              HasSubstr("with 12 devices; expected their product to be 12, or a \"placement\""));
  EXPECT_THAT(ErrorOf({"cluster=perlmutter:nodes=1", "placement=block"}),
              HasSubstr("/placement: 8 ranks, but cluster \"perlmutter\" has 4 free devices"));
  EXPECT_THAT(ErrorOf({"placement=\"0-6\""}), HasSubstr("on 7 devices of a step with 8 ranks"));
  EXPECT_THAT(ErrorOf({"placement=[0, 1, 2, 3, 4, 5, 6, 6]"}),
              HasSubstr("device 6 is listed twice"));
  EXPECT_THAT(ErrorOf({"placement=\"1-8\""}), HasSubstr("devices from 0 to 7"));
  EXPECT_THAT(ErrorOf({"placement=blocks"}),
              HasSubstr("expected block, round-robin, even, or devices"));
}

class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("rehearse-jobs-") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_ / "inner");
  }
  ~JobFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string ErrorOf(const std::string& path) {
    try {
      ReadScenario(JsonDocument::FromFile(path));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string WithJobs(const std::string& jobs) const {
    return Write("jobs.json",
                 R"({"name": "jobs", "cluster": "perlmutter:nodes=4", "jobs": )" + jobs + "}");
  }

  std::filesystem::path folder_;
};

// The job's scenario says what its step is; the machine is that of the file that lists the jobs.
TEST_F(JobFilesTest, AJobsOwnMachineIsNotUsed) {
  Json small = Json::parse(testing::kSmall);
  small["cluster"] = "no such cluster";
  small["edits"] = "no edits";
  small["placement"] = "nowhere";
  small["simulator"] = {{"fidelity", "step"}, {"algorithm", "ring"}, {"protocol", "simple"}};
  Write("inner/small.json", small.dump());
  const Scenario scenario = ReadScenario(JsonDocument::FromFile(WithJobs(
      R"([{"scenario": "inner/small.json", "placement": "block"},
          {"scenario": "inner/small.json", "placement": "block", "name": "other"}])")));
  ASSERT_EQ(scenario.jobs.size(), 2u);
  EXPECT_EQ(scenario.cluster->device_count(), 16u);
  EXPECT_EQ(scenario.lowering.fidelity, Fidelity::kFluid);
  EXPECT_EQ(scenario.jobs[0].name, "small");
  EXPECT_EQ(scenario.jobs[1].name, "other");
  EXPECT_EQ(scenario.jobs[0].placement.front(), 0u);
  EXPECT_EQ(scenario.jobs[1].placement.front(), 8u);  // the next that are free
  ASSERT_EQ(scenario.jobs[0].collective_pins.size(), 1u);
  EXPECT_EQ(scenario.jobs[0].collective_pins[0].protocol, Protocol::kSimple);
}

TEST_F(JobFilesTest, ListedDevicesGoBeforeThoseThatAreChosen) {
  Write("small.json", testing::kSmall);
  const Scenario scenario = ReadScenario(
      JsonDocument::FromFile(WithJobs(R"([{"scenario": "small.json", "placement": "block"},
                   {"scenario": "small.json", "placement": [0, "2-7", 8]}])")));
  EXPECT_THAT(scenario.jobs[0].placement, ElementsAre(1, 9, 10, 11, 12, 13, 14, 15));
}

TEST_F(JobFilesTest, MistakesAreNamedWhereTheyAre) {
  Write("small.json", testing::kSmall);
  const std::string job = R"({"scenario": "small.json", "placement": )";
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("0-7"}, )" + job + R"("7-14"}])")),
              HasSubstr("/jobs/1/placement: device 7 belongs to an earlier job"));
  EXPECT_THAT(ErrorOf(WithJobs(R"([{"scenario": "small.json"}])")), HasSubstr("placement"));
  EXPECT_THAT(ErrorOf(WithJobs("[]")), HasSubstr("expected at least one job"));
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block", "repeat": 0}])")), HasSubstr("/repeat"));
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block", "start": 3}])")), HasSubstr("/start"));
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block", "start": "-3s"}])")), HasSubstr("/start"));
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block", "name": "a/b"}])")), HasSubstr("slash"));
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block", "until": 1}])")), HasSubstr("until"));
  EXPECT_THAT(ErrorOf(WithJobs(R"([{"scenario": "none.json", "placement": "block"}])")),
              HasSubstr("there is no file"));
  EXPECT_THAT(ErrorOf(WithJobs(R"([{"placement": "block"}])")), HasSubstr("expected one of them"));
  EXPECT_THAT(ErrorOf(WithJobs(R"([{"scenario": "jobs.json", "placement": "block"}])")),
              HasSubstr("a job cannot have jobs of its own"));
  Json broken = Json::parse(testing::kSmall);
  broken["strategy"]["depth"] = "two";
  Write("small.json", broken.dump());
  EXPECT_THAT(ErrorOf(WithJobs("[" + job + R"("block"}])")),
              HasSubstr("small.json:1: /strategy/depth"));
  Json both = Json::parse(testing::kSmall);
  both["jobs"] = Json::array();
  EXPECT_THAT(ErrorOf(Write("both.json", both.dump())),
              HasSubstr("belongs to each job where there are \"jobs\""));
}

}  // namespace jobs_test
}  // namespace rehearse
