#include "scenarios/explaining/explanation.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/interruption.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"
#include "topology/files/cluster_export.h"

namespace rehearse {
namespace explanation_test {

using ::testing::HasSubstr;
using testing::ReadSmall;

// On a plain switch all axes share each device's one port, so transfers contend.
Explanation ExplainSmall(std::vector<std::string> changes = {}) {
  changes.insert(changes.begin(), "cluster=switch:devices=8");
  Scenario scenario = ReadSmall(changes);
  return Explain(scenario);
}

double StepOf(const Explanation& explanation, const std::string& what) {
  for (const Sensitivity& row : explanation.sensitivities) {
    if (row.what == what) return row.step.value();
  }
  ADD_FAILURE() << what;
  return 0;
}

// Where the board's power binds, too.
TEST(ExplanationTest, BetterArithmeticIsThatOfAnEdit) {
  const double edited = ExplainSmall({R"(cluster={"preset": "dgx-h100", "nodes": 1,
                       "edits": [{"devices": "**", "compute": "1.1x"}]})"})
                            .result.step.value();
  Scenario scenario = ReadSmall({"cluster=dgx-h100:nodes=1"});
  EXPECT_NEAR(StepOf(Explain(scenario), "arithmetic") / edited, 1, 1e-9);
}

TEST(ExplanationTest, ThePathCoversTheStepWithoutGaps) {
  for (const char* fidelity : {"formula", "fluid", "step"}) {
    const Explanation explanation = ExplainSmall({std::string("simulator.fidelity=") + fidelity});
    Seconds at;
    for (const PathStep& step : explanation.path) {
      EXPECT_EQ(step.begin, at);
      at = step.end;
    }
    EXPECT_EQ(at, explanation.result.step);
    for (const auto* shares :
         {&explanation.path_by_kind, &explanation.path_by_op, &explanation.path_by_layer}) {
      double sum = 0;
      for (const PathShare& share : *shares) sum += share.seconds.value();
      EXPECT_NEAR(sum, explanation.result.step.value(), 1e-12) << fidelity;
    }
  }
}

Scenario Shipped(const std::string& name, const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/" + name);
  for (const std::string& change : changes) document.Set(change);
  return ReadScenario(document);
}

// On NVSwitches a rank's part of a ring ends in a task that no op waits for, where another rank
// like it stands for it.
TEST(ExplanationTest, FoldedStepsOverSwitchesAreExplained) {
  const Scenario scenario =
      Shipped("strategy-fsdp.json",
              {"cluster=\"dgx-h100:nodes=2\"", "model.layers=2", "simulator.fidelity=step"});
  EXPECT_FALSE(Explain(scenario).path.empty());
}

// Three send to GPU 4 and stop the cable that GPU 3 sends across to GPU 5.
TEST(ExplanationTest, PacketsNameTheVictimsOfAnIncast) {
  const Explanation explanation = Explain(Shipped("lessons/incast.json"));
  ASSERT_TRUE(explanation.network);
  ASSERT_EQ(explanation.network->trees.size(), 1u);
  const NamedTree& tree = explanation.network->trees[0];
  EXPECT_EQ(tree.root, "right->node4/gpu0");
  EXPECT_EQ(tree.ports, 5u);
  ASSERT_EQ(tree.own.size(), 1u);
  EXPECT_EQ(tree.own[0].name.op, "tokens");
  EXPECT_EQ(tree.own[0].transfers, 3u);
  ASSERT_EQ(tree.victims.size(), 1u);
  EXPECT_EQ(tree.victims[0].name, (OpName{"stages", "activations"}));
  EXPECT_NEAR(tree.victims[0].longest.value(), 8e-3, 0.3e-3);
  const std::string text = ToText(explanation, 8, false);
  EXPECT_THAT(text, HasSubstr("because of right->node4/gpu0, 5 ports stood still"));
  EXPECT_THAT(text, HasSubstr("victims, whose way does not lead over it:"));
  const nlohmann::ordered_json json = ToJson(explanation);
  EXPECT_EQ(json["network"]["trees"][0]["victims"][0]["op"], "activations");
  EXPECT_EQ(json["network"]["shown"].size(), 7u);
  // The path is that of any other fidelity: the wait for the activations, and the stage.
  EXPECT_EQ(explanation.path.back().name.op, "forward");
}

// Whoever knows nothing of packets has no such part.
TEST(ExplanationTest, WithoutPacketsNoNetworkIsShown) {
  const Explanation explanation = ExplainSmall();
  EXPECT_FALSE(explanation.network);
  EXPECT_FALSE(ToJson(explanation).contains("network"));
}

// Which takes one simulation in place of a dozen.
TEST(ExplanationTest, WhatAStepWaitedForIsAlsoKnownByItself) {
  const Scenario scenario = ReadSmall({"cluster=switch:devices=8"});
  const std::vector<PathShare> all = Explain(scenario).path_by_kind;
  const std::vector<PathShare> kinds = CriticalKinds(scenario);
  ASSERT_EQ(kinds.size(), all.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(kinds[i].name, all[i].name);
    EXPECT_EQ(kinds[i].seconds, all[i].seconds);
  }
  // At most three, with their shares of 20 s.
  const auto share = [](const char* name, double seconds) {
    return PathShare{name, 1, Seconds(seconds)};
  };
  EXPECT_EQ(ToLine({share("forward", 10), share("data", 6), share("backward", 3), share("row", 1)}),
            "forward 50 %, data 30 %, backward 15 %");
  EXPECT_EQ(ToLine({share("forward", 19.95), share("data", 0.05)}), "forward 100 %");
}

TEST(ExplanationTest, PathStepsHaveNoSlackAndSlackIsSpareTime) {
  const Explanation explanation = ExplainSmall();
  for (const PathStep& step : explanation.path) {
    const auto slack = std::find_if(explanation.slack.begin(), explanation.slack.end(),
                                    [&](const NamedSlack& row) { return row.name == step.name; });
    ASSERT_NE(slack, explanation.slack.end());
    EXPECT_EQ(slack->least, Seconds(0)) << step.name.op;
  }
}

TEST(ExplanationTest, ExposedOpsSumToTheExposedTimeOfTheStep) {
  const Explanation explanation = ExplainSmall();
  double sum = 0;
  for (const NamedExposure& row : explanation.exposed) sum += row.exposed.value();
  EXPECT_NEAR(sum, explanation.result.breakdown.exposed_communication.value(), 1e-12);
}

TEST(ExplanationTest, ASharedPortIsContendedAndSaysByWhom) {
  const Explanation explanation = ExplainSmall();
  ASSERT_FALSE(explanation.links.empty());
  const ContendedLink& link = explanation.links.front();
  EXPECT_GT(link.most_at_once, 1u);
  EXPECT_GT(link.shared_by.size(), 1u);
  double carried = 0;
  for (const SharingOp& sharer : link.shared_by) carried += sharer.bytes.value();
  EXPECT_NEAR(carried / (link.capacity.value() * explanation.result.step.value()), link.utilization,
              1e-9);
  EXPECT_LE(link.held_back, explanation.result.step);
  ASSERT_FALSE(explanation.bottlenecks.empty());
}

TEST(ExplanationTest, FoldingChangesNoneOfTheMeans) {
  Scenario scenario = ReadSmall();
  const Explanation folded = Explain(scenario);
  scenario.lowering.fold = false;
  const Explanation unfolded = Explain(scenario);
  ASSERT_EQ(folded.exposed.size(), unfolded.exposed.size());
  for (size_t i = 0; i < folded.exposed.size(); ++i) {
    EXPECT_NEAR(folded.exposed[i].exposed.value(), unfolded.exposed[i].exposed.value(), 1e-12);
  }
  ASSERT_FALSE(folded.links.empty());
  EXPECT_EQ(folded.links.front().most_at_once, unfolded.links.front().most_at_once);
  EXPECT_NEAR(folded.links.front().held_back.value(), unfolded.links.front().held_back.value(),
              1e-11);
  ASSERT_EQ(folded.sensitivities.size(), unfolded.sensitivities.size());
}

TEST(ExplanationTest, ABetterMachineIsTheOneThatTheScenarioWouldDescribe) {
  const Explanation explanation = ExplainSmall();
  EXPECT_DOUBLE_EQ(
      StepOf(explanation, "arithmetic"),
      testing::Play({"cluster=switch:devices=8", R"(edits=[{"devices": "**", "compute": "1.1x"}])"})
          .result.step.value());
  EXPECT_DOUBLE_EQ(
      StepOf(explanation, "network device-switch"),
      testing::Play({"cluster=switch:devices=8", R"(edits=[{"links": "**", "bandwidth": "1.1x"}])"})
          .result.step.value());
  EXPECT_LE(StepOf(explanation, "latency"), explanation.result.step.value());
}

TEST(ExplanationTest, SaysWhatALibraryWouldChooseOtherwise) {
  const Explanation explanation = Explain(Shipped("strategy-hybrid-sharding.json"));
  const auto row = std::find_if(explanation.sensitivities.begin(), explanation.sensitivities.end(),
                                [](const Sensitivity& each) { return !each.anew.empty(); });
  ASSERT_NE(row, explanation.sensitivities.end());
  EXPECT_EQ(row->what, "network nic-switch");
  ASSERT_EQ(row->anew.size(), 1u);
  const auto& [before, after] = row->anew.front();
  EXPECT_EQ(before.axis, "shard");
  EXPECT_EQ(before.algorithm, "ring");
  EXPECT_EQ(after.algorithm, "tree");
  EXPECT_THAT(ToText(explanation, 8, false), HasSubstr("ring, simple -> tree, simple"));
  EXPECT_EQ(ToJson(explanation)["chosen_anew"].size(), 1u);

  // It is kept as the scenario's own pin would keep it.
  const std::string edit =
      R"(edits=[{"links": "**/nic*", "kind": "network", "bandwidth": "1.1x"}])";
  const std::string pin = fmt::format(
      R"(simulator.collectives=[{{"kind": "all-reduce", "axis": "shard", "algorithm": "{}", )"
      R"("protocol": "{}"}}])",
      before.algorithm, before.protocol);
  ASSERT_TRUE(row->kept);
  EXPECT_DOUBLE_EQ(Rehearse(Shipped("strategy-hybrid-sharding.json", {edit})).result.step.value(),
                   row->step.value());
  EXPECT_DOUBLE_EQ(
      Rehearse(Shipped("strategy-hybrid-sharding.json", {edit, pin})).result.step.value(),
      row->kept->value());
}

TEST(ExplanationTest, OnlyOtherAlgorithmsAndProtocolsAreChosenAnew) {
  const ChosenCollective ring = {"data", "all-reduce", Bytes(8), "ring", "ll", 4};
  ChosenCollective wider = ring;
  wider.channels = 8;
  ChosenCollective tree = wider;
  tree.algorithm = "tree";
  EXPECT_TRUE(ChosenAnew({ring}, {wider}).empty());
  EXPECT_EQ(ChosenAnew({ring}, {tree}).size(), 1u);
  EXPECT_TRUE(ChosenAnew({ring}, {ring, tree}).empty());  // several ways of one size
  EXPECT_TRUE(ChosenAnew({}, {tree}).empty());
}

TEST(ExplanationTest, TheScenarioIsAsItWas) {
  for (const char* cluster : {"perlmutter:nodes=4", "dgx-a100:nodes=2", "selene:nodes=2"}) {
    Scenario scenario = ReadSmall({std::string("cluster=") + cluster, "strategy.depth=4"});
    const std::string before = Rehearse(scenario).result.timeline_hash;
    const std::shared_ptr<const Cluster> machine = scenario.cluster;
    const std::string figures = ClusterToText(*machine);
    Explain(scenario);
    EXPECT_EQ(scenario.cluster, machine);
    EXPECT_EQ(ClusterToText(*machine), figures);
    EXPECT_EQ(Rehearse(scenario).result.timeline_hash, before) << cluster;
  }
}

TEST(ExplanationTest, TiersOfAFabricAreToldApart) {
  Scenario scenario = ReadSmall({"cluster=perlmutter:nodes=2"});
  const Explanation explanation = Explain(scenario);
  StepOf(explanation, "network nic-switch");
  StepOf(explanation, "nvlink device-device");
}

TEST(ExplanationTest, TextAndJsonTellTheSame) {
  const Explanation explanation = ExplainSmall();
  const auto json = ToJson(explanation);
  EXPECT_EQ(json["schema"], "rehearse.explanation.v1");
  EXPECT_EQ(json["critical_path"]["steps"].size(), explanation.path.size());
  EXPECT_EQ(json["links"].size(), explanation.links.size());
  const std::string text = ToText(explanation, 3, false);
  EXPECT_THAT(text, HasSubstr("Critical path"));
  EXPECT_THAT(text, HasSubstr("What would help"));
  EXPECT_EQ(text.back(), '\n');
}

// Stops once two machines have been played.
struct Impatient : ProgressObserver {
  void Begin(std::string_view what, std::string_view /*parts*/, uint64_t /*all*/) override {
    is_asked = what == "what would help";
  }
  void Done(double parts) override {
    if (is_asked && parts >= 2) throw Stopped("enough");
  }
  void Note(std::string_view text) override { note = text; }

  bool is_asked = false;
  std::string note;
};

TEST(ExplanationTest, StoppedItLeavesOutWhatElseWouldHelp) {
  const Explanation whole = Explain(ReadSmall());
  Impatient observer;
  const Explanation part = Explain(ReadSmall(), observer);
  EXPECT_EQ(part.path.size(), whole.path.size());
  EXPECT_EQ(part.sensitivities.size(), 2u);
  EXPECT_EQ(part.sensitivities.size() + part.left_out.size(), whole.sensitivities.size());
  EXPECT_THAT(observer.note, HasSubstr("(" + part.sensitivities.front().what + ")"));
  EXPECT_EQ(part.left_out.back(), "latency");
  EXPECT_THAT(ToText(part, 8, false), HasSubstr("  not simulated: " + part.left_out.front()));
  EXPECT_EQ(ToJson(part)["sensitivities_left_out"].size(), part.left_out.size());
  EXPECT_FALSE(ToJson(whole).contains("sensitivities_left_out"));
}

}  // namespace explanation_test
}  // namespace rehearse
