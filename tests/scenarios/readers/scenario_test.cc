#include "scenarios/readers/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace scenario_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::ErrorOf;
using testing::Play;

TEST(ScenarioTest, TheBreakdownSumsToTheStep) {
  const Result result = Play().result;
  const Breakdown& parts = result.breakdown;
  EXPECT_NEAR((parts.compute + parts.exposed_communication + parts.idle).value(),
              result.step.value(), 1e-12);
  EXPECT_GT(parts.compute.value(), 0);
}

TEST(ScenarioTest, NoLinkCarriesMoreThanItsCapacity) {
  const Result result = Play({"strategy.column=1", "strategy.depth=4"}).result;
  ASSERT_FALSE(result.links.empty());
  for (const LinkSummary& link : result.links) EXPECT_LE(link.utilization, 1 + 1e-9) << link.name;
}

TEST(ScenarioTest, TheSameScenarioGivesTheSameHash) {
  EXPECT_EQ(Play().result.timeline_hash, Play().result.timeline_hash);
}

TEST(ScenarioTest, WhatIfEditsSlowTheStepAndNameTheirMistakes) {
  const Time plain = Play().timeline.step;
  EXPECT_GT(Play({R"(edits=[{"links": "node1/nic*", "bandwidth": "0.1x"}])"}).timeline.step, plain);
  EXPECT_GT(Play({R"(edits=[{"devices": "node1/gpu2", "compute": "0.5x"}])"}).timeline.step, plain);
  EXPECT_THAT(ErrorOf({R"(edits=[{"links": "node1/nic*", "down": true}])"}),
              AllOf(HasSubstr("/edits/0"), HasSubstr("ranks 4-7")));
  EXPECT_THAT(ErrorOf({R"(edits=[{"links": "node2/nic*", "bandwidth": "0.1x"}])"}),
              AllOf(HasSubstr("/edits/0"), HasSubstr("did you mean \"node0/nic0\"?")));
}

// Equal for gcc and clang, Debug and Release: CI builds all of them. It changes only when the
// schedule, the hardware figures or the engine's meaning change; say why in the commit.
TEST(ScenarioTest, TheGoldenHashesHold) {
  // On a plain switch all axes share each device's one port: transfers overlap and contend.
  const std::vector<std::string> busy = {"cluster=switch:devices=8"};
  const auto hash = [&](const std::string& fidelity, const std::string& protocol) {
    std::vector<std::string> changes = busy;
    changes.push_back("simulator.fidelity=" + fidelity);
    changes.push_back("simulator.protocol=" + protocol);
    changes.emplace_back("simulator.slowdown={}");  // figures of families come and go
    return Play(changes).result.timeline_hash;
  };
  EXPECT_EQ(hash("formula", "none"), "849dd84cae473085");
  EXPECT_EQ(hash("fluid", "none"), "dbad7e3c13719284");
  EXPECT_EQ(hash("step", "none"), "2b0dfa3f13453f51");
  EXPECT_EQ(hash("formula", "auto"), "b34f65032474fc8d");
  EXPECT_EQ(hash("fluid", "auto"), "b50497604f0e8549");
  EXPECT_EQ(hash("step", "auto"), "a1e371e76ab46710");
}

TEST(ScenarioTest, FidelitiesAgreeOnAScheduleWithoutContention) {
  // One axis at a time (blocking), so no two collectives of a rank share links.
  const std::vector<std::string> blocking = {"strategy.overlap_all_reduce=false",
                                             "strategy.overlap_reduce_scatter=false",
                                             "strategy.overlap_all_gather=false",
                                             "strategy.column=1",
                                             "strategy.row=1",
                                             "strategy.depth=8"};
  const auto with = [&](const std::string& fidelity) {
    std::vector<std::string> changes = blocking;
    changes.push_back("simulator.fidelity=" + fidelity);
    return Play(changes).result.step.value();
  };
  const double formula = with("formula");
  EXPECT_NEAR(with("fluid"), formula, 1e-3 * formula);
  EXPECT_NEAR(with("step"), formula, 1e-2 * formula);
}

TEST(ScenarioTest, OverlapNeverMakesTheStepLonger) {
  double last = Play({"strategy.overlap_all_reduce=false", "strategy.overlap_reduce_scatter=false",
                      "strategy.overlap_all_gather=false", "strategy.cached_layers=0"})
                    .result.step.value();
  const double baseline = last;
  for (const auto& changes : std::vector<std::vector<std::string>>{
           {"strategy.overlap_reduce_scatter=false", "strategy.overlap_all_gather=false",
            "strategy.cached_layers=0"},
           {"strategy.overlap_all_gather=false", "strategy.cached_layers=0"},
           {"strategy.cached_layers=0"},
           {}}) {
    const double step = Play(changes).result.step.value();
    EXPECT_LE(step, last * (1 + 1e-9));
    last = step;
  }
  EXPECT_LT(last, baseline);
}

TEST(ScenarioTest, ResultsStateRanksMemoryAndPeak) {
  const Result result = Play({"simulator.protocol=none"}).result;
  EXPECT_EQ(result.ranks, 8u);
  // All ranks of a box behave alike: rings have no root, but go back in every second box.
  EXPECT_EQ(result.simulator.classes, 2u);
  EXPECT_DOUBLE_EQ(result.peak.value(), 312e12);
  EXPECT_DOUBLE_EQ(result.memory_capacity.value(), 40 * 1073741824.0);
  EXPECT_GT(result.memory.Total().value(), 0);
}

// Whatever its products are done in: it is that of the training's own precision, and said to be.
TEST(ScenarioTest, ThePeakOfNarrowProductsIsThePrecisions) {
  const Result result = Play({"cluster=dgx-h100:nodes=1", "training.products=fp8"}).result;
  EXPECT_EQ(result.peak, FlopsPerSecond(989.4e12));
  EXPECT_EQ(result.peak_dtype, "bf16");
}

TEST(ScenarioTest, UtilisationRefersToTheDevicesBeforeEdits) {
  const Result slowed = Play({R"(edits=[{"devices": "node0/gpu0", "compute": "0.5x"}])"}).result;
  EXPECT_DOUBLE_EQ(slowed.peak.value(), 312e12);
}

TEST(ScenarioTest, ValiantDetoursCostLatencyOnADragonfly) {
  // 2 nodes of one group: minimal routes take one local hop at most, Valiant's go through another
  // group or not at all; bandwidth is plentiful, so the step can only become longer.
  const double minimal = Play({"simulator.routing=minimal"}).result.step.value();
  EXPECT_EQ(minimal, Play().result.step.value());
  EXPECT_GE(Play({"simulator.routing=valiant", "simulator.routing_seed=7"}).result.step.value(),
            minimal);
}

TEST(ScenarioTest, KernelsThatCommunicationSlowsMakeTheStepLonger) {
  const double plain = Play({R"(simulator.slowdown={"gemm": 0})"}).result.step.value();
  EXPECT_GE(Play().result.step.value(), plain);  // what the devices' family costs
  const double slowed =
      Play({R"(simulator.slowdown={"gemm": 0.2, "memory": 0.2})"}).result.step.value();
  EXPECT_GT(slowed, plain);
  EXPECT_LT(slowed, 1.2 * plain);  // only what runs beside communication is slowed
}

// ---- bad input: one clear message with file, pointer, found and expected ------------------------

TEST(BadScenarioTest, AnUnknownKeySuggestsTheNearest) {
  EXPECT_THAT(ErrorOf({"strategy.overlap_allreduce=true"}),
              AllOf(HasSubstr("/strategy"), HasSubstr("overlap_all_reduce")));
}

TEST(BadScenarioTest, AMissingSwitchIsNamed) {
  JsonDocument document = JsonDocument::FromText(
      R"({"name": "x", "cluster": "perlmutter", "model": {"preset": "gpt-5b"},
          "training": {"batch": 8, "sequence": 256, "recomputation": "full"},
          "strategy": {"kind": "4d", "column": 1, "row": 1, "depth": 4, "data": 1}})",
      "x.json");
  try {
    ReadScenario(document);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("x.json:3"), HasSubstr("transpose_alternate_layers")));
  }
}

TEST(BadScenarioTest, AMeshThatDoesNotFitTheClusterNamesBothSizes) {
  EXPECT_THAT(ErrorOf({"strategy.depth=4"}),
              AllOf(HasSubstr("/strategy"), HasSubstr("16 ranks"), HasSubstr("8 devices")));
}

TEST(BadScenarioTest, GroupSizesThatDoNotDivideTheRanks) {
  EXPECT_THAT(ErrorOf({"strategy.column=3"}), AllOf(HasSubstr("column 3"), HasSubstr("8 devices")));
}

TEST(BadScenarioTest, GradientsInBf16OfParametersInFp32) {
  EXPECT_THAT(ErrorOf({"training.precision=fp32", "training.gradients=bf16"}),
              AllOf(HasSubstr("/training/gradients"), HasSubstr("found \"bf16\""),
                    HasSubstr("expected \"fp32\"")));
}

TEST(BadScenarioTest, MoreSplitsThanHeads) {
  EXPECT_THAT(ErrorOf({"model.heads=1", "model.hidden=1024"}),
              AllOf(HasSubstr("1 attention heads"), HasSubstr("column")));
}

TEST(BadScenarioTest, ABatchThatCannotBeDivided) {
  EXPECT_THAT(ErrorOf({"training.batch=7"}),
              AllOf(HasSubstr("7 sequences"), HasSubstr("/strategy")));
}

TEST(BadScenarioTest, AZeroGroupIsOutOfRange) {
  EXPECT_THAT(ErrorOf({"strategy.row=0"}), AllOf(HasSubstr("/strategy/row"), HasSubstr("found 0")));
}

TEST(BadScenarioTest, AMeshThatOverflowsIsRefused) {
  EXPECT_THAT(ErrorOf({"strategy.row=4194304", "strategy.depth=4194304", "strategy.data=4194304"}),
              HasSubstr("/strategy"));
}

TEST(BadScenarioTest, AnUnknownFidelity) {
  EXPECT_THAT(ErrorOf({"simulator.fidelity=fluidd"}), HasSubstr("fluid"));
}

TEST(BadScenarioTest, AnUnknownClusterAndParameter) {
  EXPECT_THAT(ErrorOf({"cluster=perlmuter"}),
              AllOf(HasSubstr("/cluster"), HasSubstr("perlmutter")));
  EXPECT_THAT(ErrorOf({"cluster=perlmutter:node=2"}), HasSubstr("nodes"));
}

}  // namespace scenario_test
}  // namespace rehearse
