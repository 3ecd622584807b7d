#include "scenarios/searching/search_machines.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace search_machines_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SimulatedPoint Point(double step, std::optional<TypicalStep> typical, std::optional<Trust> trust) {
  SimulatedPoint point;
  point.values = {step};
  point.step = Seconds(step);
  point.compute = Seconds(step * 0.75);
  point.exposed = {{"data", Seconds(step * 0.25)}};
  point.devices = 8;
  point.tokens_per_second = 1000 / step;
  point.token_name = "tokens";
  point.memory = Bytes(double{1 << 30} * 20);
  point.memory_capacity = Bytes(double{1 << 30} * 80);
  point.typical = std::move(typical);
  point.trust = std::move(trust);
  return point;
}

TypicalStep Typical(double low, double high) {
  return {Seconds((low + high) / 2), Seconds(low), Seconds(high), 1};
}

Trust Off(double error) { return {"h100", 12, 8, 64, error, 0}; }

// Of 2 s, clusters take 2.1 to 2.2 s, and predictions are a quarter off: 2 / 1.25 = 1.6 s at the
// least, 2.2 / 0.75 = 2.9333 s at the most.
TEST(SearchMachinesTest, ARangeHasTheSpreadOfGpusAndTheErrorOfPredictions) {
  const RangedNumber range = RangeOf(Point(2, Typical(2.1, 2.2), Off(0.25)));
  EXPECT_DOUBLE_EQ(range.low, 0.8);
  EXPECT_DOUBLE_EQ(range.high, 2.2 / 0.75 / 2);
  const RangedNumber spread = RangeOf(Point(2, Typical(2.1, 2.2), std::nullopt));
  EXPECT_DOUBLE_EQ(spread.low, 1);
  EXPECT_DOUBLE_EQ(spread.high, 1.1);
  const RangedNumber nothing = RangeOf(Point(2, std::nullopt, std::nullopt));
  EXPECT_EQ(nothing.low, 1);
  EXPECT_EQ(nothing.high, 1);
}

// The GB300's published steps are predicted worst: 2 of them 17.4 % off in the mean, 8 15.3 %.
TEST(SearchMachinesTest, WhatNobodyPublishedHasTheWidestRange) {
  const double error = (14 * 0.074 + 10 * 0.339) / 24;
  const RangedNumber range = RangeOf(Point(2, std::nullopt, Trust()));
  EXPECT_DOUBLE_EQ(range.low, 1 / (1 + error));
  EXPECT_DOUBLE_EQ(range.high, 1 / (1 - error));
}

// 8 to 12 over 4 to 5: 1.6 to 3.
TEST(SearchMachinesTest, ARatioGoesFromTheLeastToTheMost) {
  const RangedNumber ratio = RangedNumber{10, 8, 12}.Over({4, 4, 5});
  EXPECT_DOUBLE_EQ(ratio.value, 2.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.6);
  EXPECT_DOUBLE_EQ(ratio.high, 3);
}

// Two machines that are called one and two.
Search TwoMachines() {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  document.Set(R"(search={"default_axes": false, "per": "cluster", "axes": [{"choices": [
      {"name": "one", "set": {"cluster": "perlmutter:nodes=2", "search.price": "1EUR/h"}},
      {"name": "two", "set": {"cluster": "dgx-a100", "search.price": "3EUR/h"}}]},
      {"path": "training.recomputation", "values": ["none", "full"]}]})");
  return ReadSearch(document);
}

FoundPoints Found(const SimulatedPoint& one, const SimulatedPoint& two) {
  FoundPoints found;
  found.points = {{{0, 1}, {}, one}, {{1, 0}, {}, two}};
  found.groups.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    found.groups[i].name = i == 0 ? "one" : "two";
    found.groups[i].best = i;
    found.groups[i].looked_at = 2;
    found.groups[i].simulated = 1;
  }
  found.looked_at = 4;
  found.simulated = 2;
  return found;
}

// 500 tokens/s of 2 s and 250 of 4 s: twice as many, at ranges of 5 % from 2 / 1.05 to 2 · 1.05.
TEST(SearchMachinesTest, TheSentenceSaysWhoIsAheadByHowMuch) {
  SimulatedPoint slow = Point(4, Typical(4, 4.2), std::nullopt);
  SimulatedPoint quick = Point(2, Typical(2, 2.1), std::nullopt);
  slow.money = 1;
  quick.money = 1.02;
  const std::string sentence = MachinesSentence(TwoMachines(), Found(slow, quick));
  EXPECT_THAT(sentence, HasSubstr("two is the fastest: 500 (476 to 500) tokens/s, 2 (1.9 to 2.1) "
                                  "times as fast as one; "));
  EXPECT_THAT(sentence, HasSubstr("one is the cheapest: 1 (1 to 1.05) EUR a million tokens, two "
                                  "needs 1.02 (0.971 to 1.07) times as much, which their ranges do "
                                  "not tell apart."));
  EXPECT_THAT(sentence, Not(HasSubstr("energy")));
  // "It" is the machine that was named last.
  slow.energy = 3;
  quick.energy = 2;
  EXPECT_THAT(MachinesSentence(TwoMachines(), Found(slow, quick)),
              HasSubstr("; two also takes the least energy: 2,000 (2,000 to 2,100) Wh a million "
                        "tokens, one needs 1.5 "));
  slow.energy = 1;
  EXPECT_THAT(MachinesSentence(TwoMachines(), Found(slow, quick)),
              HasSubstr("; it takes the least energy: 1,000 "));
}

TEST(SearchMachinesTest, MachinesHaveTheirBestOrAReason) {
  FoundPoints found = Found(Point(4, {}, Off(0.05)), Point(2, {}, Trust()));
  found.points.pop_back();
  found.groups[1].best.reset();
  found.groups[1].excluded["out of memory"] = {2, "small.json: out of memory"};
  const nlohmann::ordered_json json = MachinesJson(TwoMachines(), found);
  EXPECT_EQ(json["title"], "small");
  EXPECT_EQ(json["facts"][0], "a model of 2 layers of 1024");
  EXPECT_EQ(json["facts"][1], "8 GPUs");
  EXPECT_EQ(json["facts"][2], "batch 8 of 256 tokens");
  const auto& one = json["machines"][0];
  EXPECT_EQ(one["name"], "one");
  EXPECT_EQ(one["point"], 0);
  EXPECT_EQ(one["configuration"], "recomputation full");
  EXPECT_EQ(one["binds"], "compute 75 %, exposed data 25 %");
  EXPECT_EQ(one["capacity"], 80);
  EXPECT_EQ(one["trust"], "12 published steps like it (h100): 5.0 % off in the mean");
  // What is not known to be like published steps, or was measured, claims no error of its own.
  const auto trust_of = [](std::optional<Trust> trust) {
    return MachinesJson(TwoMachines(), Found(Point(4, {}, std::move(trust)), Point(2, {}, {})))
        .at("machines")[0]["trust"]
        .get<std::string>();
  };
  EXPECT_THAT(trust_of(Trust()), HasSubstr("no published step is like it"));
  EXPECT_THAT(trust_of(Trust()), Not(HasSubstr("off in the mean")));
  EXPECT_EQ(trust_of(std::nullopt), "");
  EXPECT_THAT(json["machines"][1]["why_none"].get<std::string>(),
              AllOf(HasSubstr("none of 2 points is possible"), HasSubstr("out of memory")));
  EXPECT_EQ(json["points"]["values"]["memory"][0], 20);
  EXPECT_EQ(json["points"]["values"]["exposed"][0], 25);
  EXPECT_FALSE(json["points"]["values"].contains("money"));
  EXPECT_THAT(json["sentence"].get<std::string>(),
              HasSubstr("The best configuration on one takes 4 (3.81 to 4.21) s a step, 250"));
}

// Without "per" there is one machine: the cluster of the best.
TEST(SearchMachinesTest, OneSearchIsOneMachine) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  document.Set(R"(search={"default_axes": false, "decide": "simulation",
      "axes": [{"path": "training.recomputation", "values": ["none", "full"]}]})");
  const Search search = ReadSearch(document);
  const nlohmann::ordered_json json = MachinesJson(search, RunSearch(search, {}));
  ASSERT_EQ(json["machines"].size(), 1u);
  EXPECT_EQ(json["machines"][0]["name"], "perlmutter:nodes=2");
  EXPECT_EQ(json["points"]["name"].size(), 2u);
  EXPECT_GT(json["machines"][0]["capacity"], 39);
}

}  // namespace search_machines_test
}  // namespace rehearse
