// What the devices that a step has cost it.
#include "scenarios/playing/placement_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/explaining/explanation.h"
#include "scenarios/playing/rehearsal.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace placement_cost_test {

using ::rehearse::testing::Play;
using ::rehearse::testing::ReadSmall;
using ::testing::HasSubstr;

Result Compared(const std::vector<std::string>& changes) {
  return Rehearse(ReadSmall(changes), {.best_placement = true}).result;
}

// 16 machines whose fabric is oversubscribed, a leaf has 3 of them.
constexpr const char* kBox = R"(cluster={"name": "boxes", "nodes": 16,
    "node": {"kind": "nvswitch", "devices": 4, "device": "a100-40g",
      "nvlink": {"bandwidth": "300GBps", "latency": "2us"},
      "pcie": {"bandwidth": "32GBps", "latency": "1us"}, "sockets": 1, "pcie_switches": 4,
      "nics": 4, "cable": {"bandwidth": "25GBps", "latency": "1us"}},
    "fabric": {"kind": "fat-tree", "radix": 16, "oversubscription": 3, "routing": "spray",
      "cable": {"bandwidth": "25GBps", "latency": "1us"}}})";
constexpr const char* kRounds =
    R"(strategy={"kind": "data-parallel", "data": 8, "overlap_gradients": true})";
constexpr const char* kBatch = "training.batch=8";

TEST(PlacementCostTest, RanksInTurnsAreShownBesideTheBest) {
  const std::string nodes = "cluster=perlmutter:nodes=3";
  const Result in_turns = Compared({nodes, "placement=round-robin"});
  const Result block = Compared({nodes, "placement=block"});
  const Result even = Compared({nodes, "placement=even"});
  ASSERT_TRUE(in_turns.placement.has_value());
  EXPECT_EQ(in_turns.placement->best, std::min(block.step, even.step));
  EXPECT_GT(in_turns.step, block.step);
  EXPECT_TRUE(in_turns.placement->steps.empty());
  // The best one has nothing beside it.
  EXPECT_FALSE(block.placement.has_value());
  EXPECT_THAT(PlacementLines(in_turns).front(), HasSubstr("(\"block\") it would take"));
}

// In blocks, 8 ranks would be 6 and 2, where deepep needs equally many in each machine.
TEST(PlacementCostTest, WhatASchemeCannotPlayIsNoBest) {
  const Result even = Compared(
      {R"(cluster={"name": "boxes", "nodes": 2, "node": {"kind": "nvswitch", "devices": 6,
           "device": "h100", "nvlink": {"bandwidth": "450GBps", "latency": "2us"},
           "pcie": {"bandwidth": "64GBps", "latency": "1us"}, "sockets": 1, "pcie_switches": 6,
           "nics": 6, "cable": {"bandwidth": "50GBps", "latency": "1us"}},
           "fabric": {"kind": "switch"}})",
       R"(model={"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 512, "style": "llama",
           "feed_forward": 512, "experts": {"count": 8, "per_token": 2, "hidden": 256}})",
       R"(strategy={"kind": "combined", "shard": 8, "zero": 1, "expert": 8,
           "overlap_gradients": true})",
       "training.batch=8", "placement=even",
       R"(simulator.collectives=[{"kind": "all-to-all", "algorithm": "deepep"}])"});
  EXPECT_GT(even.step, Seconds(0));
}

// Each draw is the step of the devices that its seed leaves; the result is the lower median.
TEST(PlacementCostTest, DrawsAreARangeWithItsMedian) {
  const std::vector<std::string> changes = {kBox, kRounds, kBatch};
  std::vector<std::string> busy = changes;
  busy.emplace_back(R"(placement={"busy": 0.6})");
  const Result drawn = Rehearse(ReadSmall(busy)).result;
  ASSERT_TRUE(drawn.placement.has_value());
  const PlacementSpread& spread = *drawn.placement;
  ASSERT_EQ(spread.steps.size(), kPlacementSeeds);
  EXPECT_LT(spread.steps.front().step, spread.steps.back().step);
  EXPECT_EQ(drawn.step, spread.steps[(kPlacementSeeds - 1) / 2].step);
  for (const SeededStep& one : spread.steps) {
    std::vector<std::string> fixed = changes;
    fixed.push_back("placement={\"busy\": 0.6, \"seed\": " + std::to_string(one.seed) + "}");
    const Scenario scenario = ReadSmall(fixed);
    const Result alone = Rehearse(scenario).result;
    EXPECT_EQ(alone.step, one.step);
    // As if these devices had been listed.
    std::vector<std::string> listed = changes;
    listed.push_back("placement=" + nlohmann::json(scenario.jobs.front().placement).dump());
    EXPECT_EQ(Play(listed).result.step, one.step);
  }
  std::vector<std::string> block = changes;
  block.emplace_back("placement=block");
  EXPECT_LE(spread.best, Play(block).result.step);
  EXPECT_LE(spread.best, spread.steps.front().step);
  const Explanation explained = Explain(ReadSmall(busy));
  EXPECT_EQ(explained.result.step, drawn.step);
  ASSERT_TRUE(explained.result.placement.has_value());
}

// Of one draw, explain says which; it does not look for better devices.
TEST(PlacementCostTest, ADrawThatIsGivenIsExplained) {
  const Explanation explained =
      Explain(ReadSmall({kBox, kRounds, kBatch, R"(placement={"busy": 0.6, "seed": 2})"}));
  EXPECT_THAT(PlacementLines(explained.result), ::testing::ElementsAre(HasSubstr("busy, seed 2")));
  const nlohmann::ordered_json placement = ToJson(*explained.result.placement);
  EXPECT_EQ(placement["seed"], 2);
  EXPECT_FALSE(placement.contains("best_step_seconds"));
}

// Where a hash decides the routes, each draw has its own.
TEST(PlacementCostTest, TheMedianDrawIsTheStepUnderAHashToo) {
  const Result drawn = Rehearse(ReadSmall({kBox, kRounds, kBatch, "cluster.fabric.routing=ecmp",
                                           R"(placement={"busy": 0.6})"}))
                           .result;
  ASSERT_TRUE(drawn.placement.has_value());
  EXPECT_EQ(drawn.step, drawn.placement->steps[(kPlacementSeeds - 1) / 2].step);
}

// What a job loses by where it is, and by others, multiply to what it loses.
TEST(PlacementCostTest, AJobsSlowDownHasTwoParts) {
  nlohmann::json own = nlohmann::json::parse(rehearse::testing::kSmall);
  own.erase("cluster");
  nlohmann::json other = own;
  other["name"] = "other";
  const nlohmann::json together = {
      {"name", "together"},
      {"cluster", "perlmutter:nodes=4"},
      {"jobs",
       {{{"scenario", own}, {"placement", "0-1,4-5,8-9,12-13"}, {"repeat", 3}},
        {{"scenario", other}, {"placement", "2-3,6-7,10-11,14-15"}, {"repeat", 3}}}}};
  const Rehearsal rehearsal =
      Rehearse(ReadScenario(JsonDocument::FromText(together.dump(), "together.json")));
  const JobResult& job = rehearsal.jobs->jobs.front();
  const Result block = Play({"cluster=perlmutter:nodes=4", "placement=block"}).result;
  const Result spread = Play({"cluster=perlmutter:nodes=4", "placement=0-1,4-5,8-9,12-13"}).result;
  EXPECT_NEAR(job.best / block.step, 1, 0.02);  // three steps back to back begin sooner
  EXPECT_NEAR(job.alone / spread.step, 1, 0.02);
  EXPECT_GT(job.ByPlacement(), 1);
  EXPECT_NEAR(job.SlowDown(), job.result.step / job.best, 1e-9);
}

}  // namespace placement_cost_test
}  // namespace rehearse
