// What weeks of the points of a search come to.
#include "scenarios/searching/search_runs.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/campaign/campaign.h"
#include "scenarios/campaign/costs.h"
#include "scenarios/searching/search_machines.h"
#include "scenarios/searching/search_report.h"
#include "scenarios/searching/stopped_observer.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"

namespace rehearse {
namespace search_runs_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRun =
    R"(run={"tokens": "1T", "checkpoint": {"storage_bandwidth": "10GBps"}, "seeds": 20})";
constexpr const char* kCosts = R"(costs={"gpu": "10000USD", "years": "4 years",
                                        "electricity": "0.1USD/kWh"})";
constexpr const char* kPer = R"(search={"default_axes": false, "per": "cluster", "axes": [
    {"path": "cluster", "values": ["perlmutter:nodes=2", "dgx-a100"]},
    {"path": "training.recomputation", "values": ["none", "full"]}], "decide": "simulation"})";

Search SearchOf(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadSearch(document);
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    SearchOf(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SearchRunsTest, ThePointsRunIsThatOfItsScenario) {
  const Search search = SearchOf({kRun, kCosts, "search.decide=\"simulation\""});
  const FoundPoints found = RunSearch(search, {.threads = 1});
  ASSERT_GT(found.simulated, 2u);
  for (const size_t i : {size_t{0}, found.simulated - 1}) {
    const Scenario scenario = ReadScenario(ScenarioOf(search, found.points[i].point));
    const Rehearsal rehearsal = Rehearse(scenario);
    const RunOutcome outcome = PlayCampaign(scenario, rehearsal).outcome;
    const CostOutcome costs = CostsOf(scenario, rehearsal.result, &outcome);
    const PointRun& run = found.points[i].simulated->run.value();
    EXPECT_EQ(run.seconds.median, outcome.seconds.median);
    EXPECT_EQ(run.seconds.low, outcome.seconds.low);
    EXPECT_EQ(run.effective.high, outcome.effective.high);
    EXPECT_DOUBLE_EQ(run.money->median, costs.run->money);
    EXPECT_DOUBLE_EQ(run.kilowatt_hours->median, 1000 * costs.run->megawatt_hours);
    EXPECT_LT(run.money->low, run.money->high);
    EXPECT_EQ(run.seeds, 20u);
  }
}

// Weeks of typical steps are not the slower once more for being typical.
TEST(SearchRunsTest, TheRangeOfWeeksIsThatOfTheStepTheyAreCountedWith) {
  constexpr const char* kTypical = R"(run={"tokens": "1T", "step": "typical", "seeds": 20,
                                             "checkpoint": {"storage_bandwidth": "10GBps"}})";
  for (const char* options : {kRun, kTypical}) {
    const Search search = SearchOf({options, kPer});
    const FoundPoints found = RunSearch(search, {.threads = 1});
    const nlohmann::ordered_json points = MachinesJson(search, found)["points"];
    for (size_t i = 0; i < found.simulated; ++i) {
      const SimulatedPoint& point = found.points[i].simulated.value();
      const RangedNumber range = RangeOf(point);
      const Seconds step = point.run->step;
      EXPECT_EQ(step, options == kTypical ? point.typical->median : point.step);
      const double low = points["run_low"][i].get<double>() * step.value();
      const double high = points["run_high"][i].get<double>() * step.value();
      // The simulated step may be the quickest that there is, or the slowest.
      EXPECT_NEAR(low, std::min(range.low * point.step.value(), step.value()), 1e-5 * low);
      EXPECT_NEAR(high, std::max(range.high * point.step.value(), step.value()), 1e-5 * high);
    }
  }
}

TEST(SearchRunsTest, WeeksEndWhereTheirSearchIsStopped) {
  const Scenario scenario = [] {
    JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
    document.Set(kRun);
    return ReadScenario(document);
  }();
  const Result result = Rehearse(scenario).result;
  const std::function<bool()> is_stopped = [] { return true; };
  StoppedObserver observer(is_stopped, "stopped");
  EXPECT_THROW(PlayPointRun(scenario, result, observer), Stopped);
}

TEST(SearchRunsTest, WithoutARunThereIsNone) {
  const FoundPoints found = RunSearch(SearchOf({kCosts}), {.threads = 1});
  EXPECT_FALSE(found.points.front().simulated->run.has_value());
  EXPECT_EQ(RunsText(SearchOf({kCosts}), found), "");
}

// What fails depends on the cluster only, so that formulas need not count it: where steps differ by
// more than a percent, the longer one has the longer run.
TEST(SearchRunsTest, OnOneClusterTheOrderByStepIsThatByDays) {
  const Search search = SearchOf({kRun, "search.decide=\"simulation\""});
  const FoundPoints found = RunSearch(search, {.threads = 1});
  size_t compared = 0;
  for (size_t i = 0; i < found.simulated; ++i) {
    for (size_t k = i + 1; k < found.simulated; ++k) {
      const SimulatedPoint& one = *found.points[i].simulated;
      const SimulatedPoint& other = *found.points[k].simulated;
      if (other.step < 1.01 * one.step) continue;
      ++compared;
      EXPECT_LT(one.run->seconds.median, other.run->seconds.median);
    }
  }
  EXPECT_GT(compared, 20u);
}

TEST(SearchRunsTest, ARunCanBeTheObjective) {
  for (const char* name : {"run-time", "run-money", "run-energy"}) {
    const Search search =
        SearchOf({kRun, kCosts, std::string(R"(search.objective=")") + name + "\""});
    const FoundPoints found = RunSearch(search, {.threads = 1});
    double before = 0;
    for (const FoundPoint& point : found.points) {
      if (!point.simulated) break;
      const PointRun& run = point.simulated->run.value();
      const double value = point.simulated->values.front();
      EXPECT_EQ(value, std::string(name) == "run-time"    ? run.seconds.median
                       : std::string(name) == "run-money" ? run.money->median
                                                          : run.kilowatt_hours->median);
      EXPECT_GE(value, before);
      // Without failures it is less, and closed forms know no contention.
      EXPECT_LT(point.formula.value(), value) << name;
      before = value;
    }
    EXPECT_GT(before, 0);
  }
}

TEST(SearchRunsTest, WhatAnObjectiveOfARunNeedsIsSaid) {
  EXPECT_THAT(ErrorOf({"search.objective=\"run-time\""}),
              HasSubstr("/search/objective: run-time needs the scenario's \"run\""));
  EXPECT_THAT(ErrorOf({kRun, "search.objective=\"run-money\""}),
              HasSubstr("/search/objective: run-money needs the scenario's \"costs\""));
  EXPECT_THAT(ErrorOf({"run={}"}), HasSubstr("/run"));
}

// A --set names a file from where it is typed, which a scenario of a point is not.
TEST(SearchRunsTest, TheScenarioOfAPointHasThePricesThemselves) {
  const std::string prices = SourceDir() + "/scenarios/prices/dgx-h100.json";
  const Search search = SearchOf({kRun, "costs=\"" + prices + "\""});
  const JsonDocument document = ScenarioOf(search, SpacePoint(search.space.axes.size()));
  EXPECT_EQ(document.value()["costs"], JsonDocument::FromFile(prices).value());
}

// A storage that has no room for checkpoints is why nothing is possible.
TEST(SearchRunsTest, ARunThatCannotBeIsAReason) {
  try {
    RunSearch(SearchOf({kRun, "run.checkpoint.storage_capacity=\"1kB\""}), {.threads = 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("none of"), HasSubstr("expected room for 2")));
  }
}

TEST(SearchRunsTest, ClustersAreComparedByTheirRuns) {
  const Search search = SearchOf({kPer, kRun, kCosts});
  const FoundPoints found = RunSearch(search, {.threads = 1, .explains_bests = true});
  const std::string text = ToText(search, found, {});
  EXPECT_THAT(text, AllOf(HasSubstr("The run of each, 1T tokens; in brackets 10 % to 90 % of 20 "
                                    "runs; \"ratio\" is beside the first one's\n"),
                          HasSubstr("goodput, %"), HasSubstr("MWh"), HasSubstr("waits for ")));
  const nlohmann::ordered_json choices = ToJson(search, found, {})["per"]["choices"];
  const PointRun& first = *found.points[*found.groups[0].best].simulated->run;
  const PointRun& second = *found.points[*found.groups[1].best].simulated->run;
  EXPECT_EQ(choices[0]["run"]["ratios"]["seconds"], 1);
  EXPECT_EQ(choices[1]["run"]["ratios"]["seconds"], second.seconds.median / first.seconds.median);
  EXPECT_EQ(choices[1]["run"]["ratios"]["money"], second.money->median / first.money->median);
  EXPECT_EQ(choices[1]["run"]["effective"]["low"], second.effective.low);
  EXPECT_NE(choices[1]["waits_for"], "");

  const nlohmann::ordered_json machines = MachinesJson(search, found);
  std::vector<std::string> keys;
  for (const auto& measure : machines["measures"]) keys.push_back(measure["key"]);
  EXPECT_THAT(keys, ::testing::IsSupersetOf({"run-time", "goodput", "run-money", "run-energy"}));
  EXPECT_EQ(machines["machines"][1]["weeks"], choices[1]["run"]);
  EXPECT_THAT(machines["machines"][1]["binds"].get<std::string>(), HasSubstr("; it waits for "));
  EXPECT_THAT(machines["sentence"].get<std::string>(),
              AllOf(HasSubstr("ends its run first"), HasSubstr("the cheapest run"),
                    Not(HasSubstr("is the cheapest"))));
}

// Where a formula is put together, money of a run follows on one machine, and not on several at
// once.
TEST(SearchRunsTest, OfOneMachineAComposedFormulaCountsWhatARunCosts) {
  const std::string strategy =
      R"(strategy={"kind": "combined", "tensor": 2, "shard": 4, "zero": 1, "sequence_parallel": true,
                   "overlap_all_reduce": true, "overlap_gradients": true})";
  const auto changes = [&](const std::string& per) -> std::vector<std::string> {
    return {
        kRun, kCosts, strategy, "cluster=\"dgx-a100\"",
        R"(search={"objective": "run-money", "formula": "composed", "default_axes": false, "axes": [
                {"path": "cluster", "values": ["dgx-a100", "dgx-h100"]},
                {"path": "training.recomputation", "values": ["none", "full"]}])" +
            per + "}"};
  };
  EXPECT_THAT(ErrorOf(changes("")), HasSubstr("/search/formula: "));
  const Search search = SearchOf(changes(R"(, "per": "cluster")"));
  const FoundPoints found = RunSearch(search, {.threads = 1});
  for (const FoundPoint& point : found.points) {
    if (!point.simulated) continue;
    EXPECT_NEAR(point.formula.value() / point.simulated->run->money->median, 1, 0.3);
  }
}

TEST(SearchRunsTest, TheRunOfTheBestStandsByItself) {
  const Search search = SearchOf({kRun});
  const FoundPoints found = RunSearch(search, {.threads = 1});
  EXPECT_THAT(ToText(search, found, {}),
              HasSubstr("The run of the best   1T tokens; in brackets 10 % to 90 % of 20 runs\n"));
  EXPECT_THAT(MachinesSentence(search, found), HasSubstr("its run takes "));
}

}  // namespace search_runs_test
}  // namespace rehearse
