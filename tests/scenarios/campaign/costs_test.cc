// What a small step costs, by hand.
#include "scenarios/campaign/costs.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios/campaign/parts.h"
#include "scenarios/readers/cost_options.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace costs_test {

using ::rehearse::testing::ReadSmall;

// Two boxes of Perlmutter: 8 A100 of 400 W.
constexpr const char* kBought =
    R"(costs={"gpu": "8766USD", "host": "17532USD", "years": "1 year", "electricity": "0.1USD/kWh"})";

CostOutcome Costs(const std::vector<std::string>& changes, const RunOutcome* run = nullptr) {
  const Scenario scenario = ReadSmall(changes);
  return CostsOf(scenario, Rehearse(scenario).result, run);
}

std::string MistakeOf(const std::vector<std::string>& changes) {
  try {
    Costs(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CostsTest, PricesAreWrittenOffOverTheirYears) {
  // A year of 8,766 h: 8 GPUs of 1 USD an hour, 2 hosts of 2.
  const CostOutcome costs = Costs({kBought, "costs.gpu_power=0W", "costs.gpu_idle_power=0W"});
  EXPECT_NEAR(costs.per_hour, 8 + 2 * 2, 1e-9);
  EXPECT_EQ(costs.currency, "USD");
  EXPECT_EQ(costs.gpus_bought, 8u);
}

TEST(CostsTest, AMillionTokensTakeAMillionthOfThatManyHours) {
  const std::vector<std::string> changes = {R"(costs={"gpu_hour": "2.5USD/h"})"};
  const Scenario scenario = ReadSmall(changes);
  const Result result = Rehearse(scenario).result;
  const CostOutcome costs = CostsOf(scenario, result, nullptr);
  EXPECT_DOUBLE_EQ(costs.per_hour, 20);
  EXPECT_DOUBLE_EQ(costs.per_million, 20 * 1e6 / result.tokens_per_second / 3600);
}

TEST(CostsTest, GpusDrawTheirPowerWhileTheyAreBusyAndTheBuildingMore) {
  const std::vector<std::string> changes = {kBought, "costs.gpu_power=400W",
                                            "costs.gpu_idle_power=100W", "costs.host_power=1kW",
                                            "costs.pue=1.5"};
  const Scenario scenario = ReadSmall(changes);
  const Result result = Rehearse(scenario).result;
  const CostOutcome costs = CostsOf(scenario, result, nullptr);
  const double busy = 1 - result.breakdown.idle / result.step;
  const double kilowatts = 1.5 * (8 * (0.1 + 0.3 * busy) + 2);
  EXPECT_NEAR(costs.kilowatts, kilowatts, 1e-9);
  EXPECT_NEAR(costs.idle_kilowatts, 1.5 * (8 * 0.1 + 2), 1e-9);
  EXPECT_NEAR(costs.electricity, 0.1 * kilowatts, 1e-9);
  EXPECT_NEAR(costs.kwh_per_million, kilowatts * 1e6 / result.tokens_per_second / 3600, 1e-9);
}

TEST(CostsTest, TheWholeNetworkIsPaidFor) {
  const char* const prices =
      R"(costs={"nic": "8766USD", "cable": "8766USD", "optics": "8766USD", "years": "1 year"})";
  const Scenario scenario = ReadSmall({prices});
  const RunParts parts = CountParts(*scenario.cluster, scenario.jobs.front().placement);
  const double cables = parts.counts[static_cast<size_t>(PartKind::kCable)];
  // 8 NICs, and two ends of each cable.
  EXPECT_NEAR(Costs({prices}).per_hour, 8 + cables + 2 * cables, 1e-9);
}

TEST(CostsTest, GpusWithoutARankArePaidForAndIdle) {
  // Half of four boxes; the others' GPUs draw what idle ones do.
  const std::vector<std::string> changes = {kBought, "costs.gpu_power=400W",
                                            "costs.gpu_idle_power=100W", "cluster.nodes=4",
                                            "placement=0-7"};
  const CostOutcome half = Costs(changes);
  EXPECT_EQ(half.gpus_bought, 16u);
  EXPECT_EQ(half.gpus_used, 8u);
  std::vector<std::string> fewer = changes;
  fewer.emplace_back("costs.gpus_bought=8");
  EXPECT_NEAR(half.kilowatts - Costs(fewer).kilowatts, 8 * 0.1, 1e-9);
}

TEST(CostsTest, ARunPaysForTheTimeThatIsNoTraining) {
  RunOutcome run;
  run.tokens = 1e9;
  run.seconds.median = 3600 * 100;
  run.shares.useful = 0.75;
  run.shares.lost = 0.05;
  run.shares.restart = 0.2;
  const CostOutcome costs =
      Costs({kBought, "costs.gpu_power=400W", "costs.carbon=0.5kg/kWh"}, &run);
  ASSERT_TRUE(costs.run.has_value());
  // 80 of 100 hours at full power, 20 idle.
  const double energy = 80 * costs.kilowatts + 20 * costs.idle_kilowatts;
  EXPECT_NEAR(costs.run->megawatt_hours, energy / 1000, 1e-9);
  EXPECT_NEAR(costs.run->carbon_tonnes, energy * 0.5 / 1000, 1e-9);
  EXPECT_NEAR(costs.run->money, 100 * (8 + 4) + 0.1 * energy, 1e-6);
  EXPECT_NEAR(costs.run->per_million, costs.run->money / 1000, 1e-9);
}

// The median run may be far from the mean, whose shares are known: what it trains is the same.
TEST(CostsTest, ALongerRunTrainsNoMore) {
  RunOutcome run;
  run.tokens = 1e9;
  run.steps = 360;
  run.step = Seconds(1000);  // 100 hours
  run.shares.useful = 0.8;
  run.shares.lost = 0.05;
  run.shares.waiting = 0.15;
  run.seconds.median = 3600 * 180;
  const CostOutcome costs = Costs({kBought, "costs.gpu_power=400W"}, &run);
  // A quarter of the 80 hours on top is training that is done again.
  const double energy = 120 * costs.kilowatts + 60 * costs.idle_kilowatts;
  EXPECT_NEAR(costs.run->megawatt_hours, energy / 1000, 1e-9);
}

TEST(CostsTest, MistakesSayWhereAndWhatWasExpected) {
  const auto expect = [](const std::vector<std::string>& changes,
                         const std::vector<std::string>& parts) {
    const std::string mistake = MistakeOf(changes);
    for (const std::string& part : parts)
      EXPECT_NE(mistake.find(part), std::string::npos) << part << " in: " << mistake;
  };
  expect({kBought, R"(costs.gpu="30000")"}, {"/costs/gpu", "found \"30000\"", "its currency"});
  expect({kBought, "costs.gpu=-1USD"}, {"/costs/gpu", "found \"-1USD\"", "zero or more"});
  expect({kBought, "costs.host=5EUR"}, {"/costs/host", "found \"5EUR\"", "USD, as other prices"});
  expect({R"(costs={"gpu": "1USD"})"}, {"/costs", "expected \"years\""});
  expect({R"(costs={"pue": 1.1})"}, {"/costs", "at least one price"});
  expect({kBought, "costs.gpu_hour=2USD/h"}, {"/costs/gpu", "\"gpu_hour\" pays"});
  expect({R"(costs={"gpu_hour": "2USD"})"}, {"/costs/gpu_hour", "2.5USD/h"});
  expect({kBought, "costs.pue=0.9"}, {"/costs/pue", "found 0.9"});
  expect({kBought, "costs.host_power=4"}, {"/costs/host_power", "found 4"});
  expect({kBought, "costs.gpus_bought=4"}, {"/costs/gpus_bought", "found 4", "at least the 8"});
  expect({kBought, "costs.carbon=0.4"}, {"/costs/carbon"});
  expect({kBought, "costs.electricity=0.1USD"}, {"/costs/electricity", "0.08USD/kWh"});
}

}  // namespace costs_test
}  // namespace rehearse
