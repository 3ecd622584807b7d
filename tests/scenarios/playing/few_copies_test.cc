// Steps of many micro-batches, played with few of them and with all.
#include "scenarios/playing/few_copies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace few_copies_test {

using rehearse::testing::ReadSmall;

// A pipeline of so many micro-batches of one sequence for each of two copies of the model.
Scenario Pipelined(const std::string& pipeline, uint32_t micro_batches,
                   std::vector<std::string> changes = {}) {
  std::vector<std::string> all = {
      "model.layers=8",
      R"(strategy={"kind": "megatron", "tensor": 1, "data": 2, "sequence_parallel": false,
          "overlap_all_reduce": false, "overlap_gradients": true, "distributed_optimizer": false})",
      "pipeline=" + pipeline, fmt::format("training.batch={}", 2 * micro_batches),
      fmt::format("training.micro_batches={}", micro_batches)};
  all.insert(all.end(), changes.begin(), changes.end());
  return ReadSmall(all);
}

// Returns whether few copies did.
bool ExpectTheSame(const Scenario& scenario) {
  const PlayedScenario few = PlayScenario(scenario);
  const PlayedScenario whole = PlayScenario(scenario, {.jump = false});
  EXPECT_FALSE(whole.simulation.recurrence.has_value());
  const Timeline& ours = few.simulation.timeline;
  const Timeline& theirs = whole.simulation.timeline;
  EXPECT_EQ(ours.step, theirs.step);
  EXPECT_EQ(HashOf(ours), HashOf(theirs));
  EXPECT_EQ(few.simulation.stats.transfers, whole.simulation.stats.transfers);
  EXPECT_EQ(ours.links.size(), theirs.links.size());
  for (size_t link = 0; link < theirs.links.size(); ++link) {
    EXPECT_EQ(ours.links[link].bytes, theirs.links[link].bytes);
    EXPECT_EQ(ours.links[link].count, theirs.links[link].count);
  }
  return few.simulation.recurrence.has_value();
}

TEST(FewCopiesTest, AStepOfManyMicroBatchesFollowsFromFew) {
  for (const char* pipeline :
       {R"({"stages": 4, "schedule": "1f1b"})",
        R"({"stages": 4, "schedule": "interleaved", "virtual": 2})",
        R"({"stages": 4, "schedule": "zb-h1"})", R"({"stages": 4, "schedule": "dualpipe"})"}) {
    SCOPED_TRACE(pipeline);
    EXPECT_TRUE(ExpectTheSame(Pipelined(pipeline, 480)));
  }
}

TEST(FewCopiesTest, AtEveryFidelityAndWithSlowerLinks) {
  constexpr const char* kPipeline = R"({"stages": 4, "schedule": "1f1b"})";
  for (const char* change :
       {R"(simulator={"fidelity": "formula"})", R"(simulator={"fidelity": "step"})",
        R"(simulator={"perturbation": {"link_jitter": 0.1, "seed": 3}})",
        R"(edits=[{"links": "node0/nic0", "bandwidth": "0.5x"}])"}) {
    SCOPED_TRACE(change);
    EXPECT_TRUE(ExpectTheSame(Pipelined(kPipeline, 240, {change})));
  }
}

// One that has more devices than the job has ranks, which need not lie side by side.
TEST(FewCopiesTest, OnAPartOfAMachine) {
  for (const char* placement : {R"("even")", R"([0, 1, 2, 3, 9, 8, 11, 10])"}) {
    SCOPED_TRACE(placement);
    const Scenario scenario =
        Pipelined(R"({"stages": 4, "schedule": "1f1b"})", 240,
                  {"cluster=dgx-a100:nodes=2", fmt::format("placement={}", placement)});
    EXPECT_TRUE(ExpectTheSame(scenario));
    const Rehearsal with = Rehearse(scenario);
    Rehearsal without = Rehearse(scenario, {.spans = false});
    EXPECT_EQ(with.timeline.ranks, 8u);
    EXPECT_EQ(without.timeline.step, with.timeline.step);
    EXPECT_EQ(without.result.timeline_hash, HashOf(with.timeline));
    without.result.simulator = with.result.simulator;
    EXPECT_EQ(ToJson(without.result), ToJson(with.result));
  }
}

TEST(FewCopiesTest, WhatDiffersFromCopyToCopyIsPlayedInFull) {
  constexpr const char* kPipeline = R"({"stages": 4, "schedule": "1f1b"})";
  for (const char* change : {R"(simulator={"perturbation": {"compute_jitter": 0.02, "seed": 3}})",
                             R"(simulator={"perturbation": {"events": [
             {"at": "1ms", "links": "node0/nic0", "bandwidth": "0.5x"}]}})"}) {
    SCOPED_TRACE(change);
    EXPECT_FALSE(ExpectTheSame(Pipelined(kPipeline, 240, {change})));
  }
}

TEST(FewCopiesTest, AResultIsTheSameWithoutTheSpansOfAllCopies) {
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v"}) {  // the last validates updates later
    SCOPED_TRACE(schedule);
    const Scenario scenario =
        Pipelined(fmt::format(R"({{"stages": 4, "schedule": "{}"}})", schedule), 240);
    const Rehearsal with = Rehearse(scenario);
    Rehearsal without = Rehearse(scenario, {.spans = false});
    EXPECT_FALSE(with.timeline.spans.empty());
    EXPECT_TRUE(without.timeline.spans.empty());
    EXPECT_EQ(without.timeline.step, with.timeline.step);
    EXPECT_EQ(without.result.timeline_hash, HashOf(with.timeline));
    without.result.simulator = with.result.simulator;
    EXPECT_EQ(ToJson(without.result), ToJson(with.result));
  }
}

// Whatever comes before and after, and however short the body is.
TEST(FewCopiesTest, ABodyMayBeOneOp) {
  const auto scenario = [](const char* ops, const char* repeat) {
    return ReadScenario(JsonDocument::FromText(
        fmt::format(
            R"({{"name": "x", "cluster": "switch:devices=2", "jobs": [{{"placement": "block",
          "schedule": {{"schema": "rehearse.schedule.v1", "name": "x", "ranks": 2,
            "communicators": [{{"name": "all", "ranks": "all"}}],
            "streams": [{{"name": "compute", "kind": "compute"}},
                        {{"name": "all", "kind": "communication"}}],
            "repeats": [{{{}, "times": 99}}], "ops": [{}]}}}}]}})",
            repeat, ops),
        "x.json"));
  };
  constexpr const char* kKernel = R"({"name": "kernel", "duration": "3us"})";
  constexpr const char* kSum =
      R"({"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "1MB"})";
  EXPECT_TRUE(ExpectTheSame(scenario(kKernel, R"("begin": 0, "end": 1)")));
  EXPECT_TRUE(ExpectTheSame(scenario(kSum, R"("begin": 0, "end": 1)")));
  const std::string both = fmt::format("{}, {}", kKernel, kSum);
  EXPECT_TRUE(ExpectTheSame(scenario(both.c_str(), R"("begin": 1, "end": 2)")));
  const std::string three = both + R"(, {"name": "last", "duration": "3us", "after": "sum"})";
  EXPECT_TRUE(ExpectTheSame(scenario(three.c_str(), R"("begin": 1, "end": 2)")));
}

TEST(FewCopiesTest, CopiesComeBackAfterwards) {
  Schedule schedule;
  Role role;
  role.ops.resize(3);
  role.repeats = {{.begin = 1, .end = 2, .times = 100}};
  schedule.roles = {role};
  schedule.role_of_rank = {0};
  // 24 of 101 are played, and what is left out is a multiple of 12.
  const uint32_t left_out = CopiesToLeaveOut(schedule);
  EXPECT_EQ(left_out, 72u);
  {
    const FewCopies few(&schedule, left_out);
    EXPECT_EQ(schedule.roles[0].repeats[0].times, 28u);
  }
  EXPECT_EQ(schedule.roles[0].repeats[0].times, 100u);
  EXPECT_FALSE(AlikeUnder(SimulationOptions{.record_tasks = true}).micro_batches);
  schedule.roles[0].repeats[0].times = 20;
  EXPECT_EQ(CopiesToLeaveOut(schedule), 0u);
}

}  // namespace few_copies_test
}  // namespace rehearse
