// Weeks of a small scenario's step.
#include "scenarios/campaign/campaign.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/campaign/campaign_picture.h"
#include "scenarios/campaign/checkpoint_cost.h"
#include "scenarios/campaign/parts.h"
#include "scenarios/readers/run_options.h"
#include "sim/report/result_fields.h"
#include "sim/schedule/memory.h"
#include "tests/scenarios/small_scenario.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace campaign_test {

using ::rehearse::testing::ReadSmall;

// The tokens of a step are 8 sequences of 256: 2,048.
constexpr const char* kRun =
    R"(run={"tokens": "10G", "checkpoint": {"storage_bandwidth": "10GBps"}, "seeds": 20})";

Campaign Weeks(std::vector<std::string> changes = {}) {
  changes.insert(changes.begin(), kRun);
  const Scenario scenario = ReadSmall(changes);
  return PlayCampaign(scenario, Rehearse(scenario));
}

std::string MistakeOf(const std::vector<std::string>& changes) {
  try {
    Weeks(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double CountOf(const RunParts& parts, PartKind kind) {
  return parts.counts[static_cast<size_t>(kind)];
}

TEST(CampaignTest, PartsAreCountedFromTheCluster) {
  // Two boxes of Perlmutter: 4 A100 and 4 NICs each, a cable from each NIC.
  const Scenario scenario = ReadSmall({kRun});
  const RunParts parts = CountParts(*scenario.cluster, scenario.jobs.front().placement);
  EXPECT_EQ(CountOf(parts, PartKind::kGpu), 8);
  EXPECT_EQ(CountOf(parts, PartKind::kHbm), 8);
  EXPECT_EQ(CountOf(parts, PartKind::kNic), 8);
  EXPECT_EQ(CountOf(parts, PartKind::kHost), 2);
  EXPECT_EQ(parts.machines, 2u);
  EXPECT_EQ(parts.devices_per_machine, 4);
  // As many cables as NICs, and those between the switches.
  EXPECT_GE(CountOf(parts, PartKind::kCable), 8);
}

TEST(CampaignTest, AJobOnAPartOfTheClusterHasAShareOfItsNetwork) {
  const Scenario all = ReadSmall({kRun});
  const Scenario half = ReadSmall({kRun, "cluster.nodes=4", "placement=0-7"});
  const RunParts parts = CountParts(*half.cluster, half.jobs.front().placement);
  EXPECT_EQ(CountOf(parts, PartKind::kNic), 8);
  EXPECT_EQ(parts.machines, 2u);
}

TEST(CampaignTest, ACheckpointHasWhatOneRankKeepsAlone) {
  const Scenario scenario =
      ReadSmall({kRun, "cluster=switch:devices=1", "strategy.column=1", "strategy.row=1",
                 "strategy.depth=1", "strategy.cached_layers=0"});
  const Rehearsal rehearsal = Rehearse(scenario);
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const MemoryUse use = MemoryOf(rehearsal.schedule.roles.front());
  EXPECT_EQ(CheckpointBytes(workload), use.parameters + use.optimizer);
}

TEST(CampaignTest, TimesOfACheckpointFollowFromBandwidths) {
  const Scenario scenario = ReadSmall({kRun, "run.checkpoint.copy_bandwidth=5GBps"});
  const Rehearsal rehearsal = Rehearse(scenario);
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const RunParts parts = CountParts(*scenario.cluster, scenario.jobs.front().placement);
  const CheckpointCost cost = CostOfCheckpoint(*scenario.run, parts, workload, rehearsal.schedule);
  const double bytes = CheckpointBytes(workload).value();
  // An eighth from each device; all of it at the storage, whose 10 GB/s are less than the NICs'.
  EXPECT_DOUBLE_EQ(cost.copy.value(), bytes / 8 / 5e9);
  EXPECT_DOUBLE_EQ(cost.write.value(), bytes / 10e9);
  EXPECT_EQ(cost.stall, cost.copy);
  // One machine that writes all has 4 devices to copy from.
  const Scenario one =
      ReadSmall({kRun, "run.checkpoint.copy_bandwidth=5GBps", "run.checkpoint.sharded=false",
                 "run.checkpoint.asynchronous=false"});
  const CheckpointCost whole = CostOfCheckpoint(*one.run, parts, workload, rehearsal.schedule);
  EXPECT_DOUBLE_EQ(whole.copy.value(), bytes / 4 / 5e9);
  EXPECT_EQ(whole.stall, whole.copy + whole.write);
}

TEST(CampaignTest, ANeighbourTakesItsShareOverTheNics) {
  const Scenario scenario =
      ReadSmall({R"(run={"tokens": "10G", "checkpoint": {"to": "neighbour"}})"});
  const Rehearsal rehearsal = Rehearse(scenario);
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const RunParts parts = CountParts(*scenario.cluster, scenario.jobs.front().placement);
  const CheckpointCost cost = CostOfCheckpoint(*scenario.run, parts, workload, rehearsal.schedule);
  EXPECT_EQ(cost.write, CheckpointBytes(workload) / 2.0 / parts.nics);
}

TEST(CampaignTest, WithoutFailuresTheGoodputIsThatOfTheCheckpoints) {
  // 4,882,813 steps; what is written beside training costs the copy only, and the last write.
  const Campaign weeks = Weeks({"run.failures.like=none", "run.checkpoint.interval=10min"});
  const RunOutcome& outcome = weeks.outcome;
  EXPECT_EQ(outcome.steps, 4'882'813u);
  const double interval = outcome.used.length.value();
  EXPECT_NEAR(interval, 600, outcome.step.value());
  const double stall = outcome.checkpoint.stall.value();
  EXPECT_NEAR(outcome.effective.median, interval / (interval + stall), 1e-5);
  EXPECT_EQ(outcome.effective.low, outcome.effective.high);
}

TEST(CampaignTest, RatesAreOfPartsInUse) {
  // 8 GPUs, each every 800 h: one of them every 100 h.
  const Campaign weeks = Weeks({"run.failures.like=none", "run.failures.gpu=800h"});
  EXPECT_DOUBLE_EQ(weeks.outcome.between.value(), 360'000);
}

TEST(CampaignTest, Llama3sRatesAreThoseOfItsTable) {
  const FailureOptions rates = FailureOptions::Published(PublishedFailures::kLlama3);
  const double seconds = 54 * 86'400.0;
  // Of 16,384 GPUs in 2,048 machines, 2 cables a GPU and 1,280 switches: 419 in 54 days.
  const double failures = seconds * (16384 * (rates.gpu->per_second + rates.hbm->per_second +
                                              rates.nic->per_second + 2 * rates.cable->per_second) +
                                     1280 * rates.switches->per_second +
                                     2048 * (rates.host->per_second + rates.software->per_second));
  EXPECT_NEAR(failures, 419, 1e-9);
  // RSC-1: 6.50 of a host of 8 GPUs in 1,000 days, if its network is as Llama 3's.
  const FailureOptions rsc = FailureOptions::Published(PublishedFailures::kRsc1);
  EXPECT_NEAR(rsc.gpu->per_second / rates.gpu->per_second, 6.50 / (419 / 2048.0 / 54 * 1000),
              1e-12);
}

TEST(CampaignTest, SharesAddUp) {
  const RunShares shares =
      Weeks({"run.tokens=1T", "run.spares=0", "run.failures.gpu=1000h"}).outcome.shares;
  EXPECT_NEAR(shares.useful + shares.checkpoints + shares.lost + shares.slow + shares.detection +
                  shares.restart + shares.waiting,
              1, 1e-9);
  EXPECT_GT(shares.waiting, 0);
}

TEST(CampaignTest, FewerReplicasAreBetterThanWaiting) {
  // Boxes of one replica each.
  const std::vector<std::string> two = {"strategy.depth=1",      "strategy.data=2",
                                        "run.tokens=1T",         "run.spares=0",
                                        "run.failures.gpu=500h", "run.repair=3 days"};
  std::vector<std::string> elastic = two;
  elastic.emplace_back("run.elastic=true");
  const RunOutcome waits = Weeks(two).outcome;
  const RunOutcome goes_on = Weeks(elastic).outcome;
  EXPECT_LT(goes_on.seconds.median, waits.seconds.median);
  EXPECT_GT(goes_on.shares.slow, 0);
}

TEST(CampaignTest, WhatItComesToIsWrittenReadAndDrawn) {
  const Campaign weeks = Weeks();
  const nlohmann::ordered_json json = ToJson(weeks.outcome);
  EXPECT_EQ(json["interval"]["seconds"], weeks.outcome.used.length.value());
  const std::string text = ToText(weeks.outcome, false);
  EXPECT_NE(text.find("10G tokens take"), std::string::npos) << text;
  EXPECT_NE(text.find("Young's formula"), std::string::npos) << text;
  const std::string picture = CampaignSvg(weeks, "small");
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_NE(picture.find("</svg>"), std::string::npos);
}

TEST(CampaignTest, MistakesSayWhereAndWhatWasExpected) {
  const auto expect = [](const std::vector<std::string>& changes,
                         const std::vector<std::string>& parts) {
    const std::string mistake = MistakeOf(changes);
    for (const std::string& part : parts)
      EXPECT_NE(mistake.find(part), std::string::npos) << part << " in: " << mistake;
  };
  expect({R"(run.tokens="0")"}, {"/run/tokens", "found \"0\"", "above zero"});
  expect({"run.failures.gpu=-1e-5/h"}, {"/run/failures/gpu", "found \"-1e-5/h\"", "zero or more"});
  expect({"run.spares=-1"}, {"/run/spares", "found -1", "from 0"});
  expect({"run.checkpoint.storage_bandwidth=0GBps"},
         {"/run/checkpoint/storage_bandwidth", "found \"0GBps\"", "above zero"});
  expect({"run.checkpoint.storage_capacity=1MB"},
         {"/run/checkpoint/storage_capacity", "found 1MB", "room for 2 checkpoints"});
  expect({"run.checkpoint.to=neighbour"},
         {"/run/checkpoint/storage_bandwidth", "\"to\" is a neighbour"});
  expect({R"(run.checkpoint={})"}, {"/run/checkpoint", "expected \"storage_bandwidth\""});
  expect({"run.elastic=true"}, {"/run/elastic", "replicas"});
  expect({"run.failures.gpu=1min", "run.detection=1h"}, {"/run", "does not get ahead"});
  expect({"run.stragglers={\"rate\": \"1e-6/h\"}"}, {"/run/stragglers", "slowdown"});
  expect({"run.detection=-5min"}, {"/run/detection", "found \"-5min\""});
  expect({"run.seeds=0"}, {"/run/seeds", "from 1"});
}

TEST(CampaignTest, JobsHaveNoRun) {
  JsonDocument document = JsonDocument::FromText(
      R"({"name": "two", "cluster": "perlmutter:nodes=2", "run": {"tokens": "1T",
          "checkpoint": {"storage_bandwidth": "1GBps"}}, "jobs": []})",
      "two.json");
  try {
    ReadScenario(document);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/run: is of a scenario's own step"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace campaign_test
}  // namespace rehearse
