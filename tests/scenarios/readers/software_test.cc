#include "scenarios/readers/software.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/pipeline_reader.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/strategy_reader.h"
#include "scenarios/readers/training_reader.h"
#include "sim/base/error.h"

namespace rehearse {
namespace software_test {

using ::testing::HasSubstr;

// Without a switch of training or strategy.
constexpr const char* kBare = R"({
  "name": "bare", "software": "fsdp-eager", "cluster": "perlmutter:nodes=2",
  "model": {"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 4096},
  "training": {"batch": 8, "sequence": 256, "recomputation": "full"},
  "strategy": {"kind": "fsdp", "shard": 8, "replicas": 1}})";

Scenario Read(const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromText(kBare, "bare.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadScenario(document);
}

std::string MistakeOf(const std::vector<std::string>& changes) {
  try {
    Read(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

const Workload& WorkloadOf(const Scenario& scenario) {
  return std::get<Workload>(scenario.jobs.front().work);
}

TEST(SoftwareTest, SwitchesThatTheStackSetsNeedNotBeGiven) {
  const Scenario scenario = Read();
  const Workload& workload = WorkloadOf(scenario);
  EXPECT_EQ(workload.training.kernels, KernelStyle::kEager);
  EXPECT_EQ(workload.training.optimizer, OptimizerKernels::kForeach);
  ASSERT_TRUE(workload.strategy.shard);
  EXPECT_TRUE(workload.strategy.shard->by_layer);
  EXPECT_EQ(workload.strategy.shard->copies, ShardCopies::kFlat);
  EXPECT_THAT(MistakeOf({"software=megatron-core"}),
              HasSubstr("bare.json:5: /strategy: missing key"));
}

TEST(SoftwareTest, WhatTheScenarioSaysCountsAndTheResultTellsBoth) {
  const Result result = Rehearse(Read({"strategy.prefetch=2", "training.kernels=compiled"})).result;
  EXPECT_EQ(result.software.name, "fsdp-eager");
  size_t given = 0;
  for (const SwitchUse& one : result.software.switches) {
    if (one.stack.empty()) continue;
    ++given;
    if (one.path == "strategy.prefetch") {
      EXPECT_EQ(one.value, "2");
      EXPECT_EQ(one.stack, "1");
    } else {
      EXPECT_EQ(one.path, "training.kernels");
      EXPECT_EQ(one.value, "\"compiled\"");
      EXPECT_EQ(one.stack, "\"eager\"");
    }
  }
  EXPECT_EQ(given, 2u);
}

// NeMo runs without NVLS, whether or not the scenario says how it is simulated, and its
// tensor-parallel transfers slow nothing down.
TEST(SoftwareTest, AStackAlsoSetsWhatItsEnvironmentDoes) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"simulator.fidelity=step"}}) {
    std::vector<std::string> changes = {"software=nemo"};
    changes.insert(changes.end(), more.begin(), more.end());
    changes.insert(changes.end(),
                   {"strategy={\"kind\": \"megatron\", \"tensor\": 2, \"data\": 4}"});
    const Scenario scenario = Read(changes);
    EXPECT_FALSE(scenario.lowering.nccl.nvls);
    EXPECT_EQ(scenario.lowering.copy_engines, std::vector<std::string>{"tensor"});
  }
  EXPECT_TRUE(Read().lowering.nccl.nvls);
  EXPECT_TRUE(Read().lowering.copy_engines.empty());
}

// Where torchtitan has stages, weights stay gathered and gradients whole until the last
// micro-batch; and its allocator's segments grow.
TEST(SoftwareTest, TorchtitansStagesHoldWhatTheyGathered) {
  const char* const strategy =
      R"(strategy={"kind": "combined", "shard": 4, "sequence_parallel": false})";
  const Scenario stages =
      Read({"software=torchtitan", strategy, R"(pipeline={"stages": 2, "schedule": "1f1b"})"});
  EXPECT_TRUE(WorkloadOf(stages).strategy.shard->until_last_micro_batch);
  EXPECT_FALSE(WorkloadOf(stages).strategy.shard->reshard_after_forward);
  EXPECT_EQ(stages.memory.allocator, AllocatorKind::kExpandable);
  const Scenario whole =
      Read({"software=torchtitan", R"(strategy={"kind": "combined", "shard": 8})"});
  EXPECT_FALSE(WorkloadOf(whole).strategy.shard->until_last_micro_batch);
  EXPECT_TRUE(WorkloadOf(whole).strategy.shard->reshard_after_forward);
}

TEST(SoftwareTest, UnknownStacksAreRefusedWithWhatWasMeant) {
  EXPECT_THAT(MistakeOf({"software=fsdp-egaer"}),
              HasSubstr("/software: found \"fsdp-egaer\"; did you mean \"fsdp-eager\"?"));
}

TEST(SoftwareTest, SwitchesOfDecodersAreNotForOtherNetworks) {
  const Scenario scenario =
      Read({R"(model={"kind": "mlp", "sizes": [64, 256, 64]})", R"(training={"batch": 8,
            "recomputation": "none"})"});
  EXPECT_EQ(WorkloadOf(scenario).training.kernels, KernelStyle::kEager);
}

TEST(SoftwareTest, AScenarioWithoutSoftwareStaysAsItIs) {
  JsonDocument document = JsonDocument::FromText(kBare, "bare.json");
  const nlohmann::json before = document.value();
  nlohmann::json without = before;
  without.erase("software");
  JsonDocument plain = JsonDocument::FromValue(without, {"bare.json", 1, ""});
  ApplySoftware(&plain, 80);
  EXPECT_EQ(plain.value(), without);
}

// Each switch is a key of its table, with a value that the table accepts; training.attention
// depends on the implementation and is skipped where it is not known.
TEST(SoftwareTest, EverySwitchOfEveryStackIsAKeyAndHasASource) {
  std::set<std::string> names;
  for (const SoftwareStack& stack : SoftwareStacks()) {
    EXPECT_TRUE(names.insert(stack.name).second) << stack.name;
    EXPECT_NE(stack.summary, "");
    for (const SoftwareSwitch& one : stack.switches) {
      EXPECT_NE(one.source, "") << stack.name << ", " << one.path;
      const std::string key = one.path.substr(one.path.find('.') + 1);
      if (one.path.rfind("training.", 0) == 0) {
        EXPECT_NE(TrainingShape().Find(key), nullptr) << one.path;
        continue;
      }
      if (one.path.rfind("pipeline.", 0) == 0) {
        EXPECT_NE(PipelineShape().Find(key), nullptr) << one.path;
        continue;
      }
      if (one.path.rfind("simulator.", 0) == 0) {
        EXPECT_NE(SimulatorShape().Find(key), nullptr) << one.path;
        continue;
      }
      if (one.path.rfind("memory.", 0) == 0) {
        EXPECT_NE(MemoryOptionsFields().shape().Find(key), nullptr) << one.path;
        continue;
      }
      size_t known = 0;
      for (const StrategyKind& kind : StrategyKinds()) {
        if (std::count(one.kinds.begin(), one.kinds.end(), kind.name) == 0) continue;
        known +=
            std::any_of(kind.tables.begin(), kind.tables.end(),
                        [&](const ObjectShapeOf table) { return table().Find(key) != nullptr; });
      }
      EXPECT_EQ(known, one.kinds.size()) << stack.name << ", " << one.path;
      EXPECT_GT(known, 0u) << stack.name << ", " << one.path;
    }
  }
}

}  // namespace software_test
}  // namespace rehearse
