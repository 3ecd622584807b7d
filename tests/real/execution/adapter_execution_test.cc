// Low-rank adapters: whatever the strategy, the numbers are the serial step's, and what is frozen
// stays as it was. Packed documents: attention stays within them, however ranks share the work.
// Attention and MLP side by side.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "tests/support/sanitizers.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/pipeline_orders.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"

namespace rehearse {
namespace adapter_execution_test {

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 5;

GptModel Decoder(bool llama, std::optional<LoraAdapters> lora) {
  GptModel model;
  model.name = "decoder";
  model.layers = 2;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  model.lora = lora;
  if (llama) {
    model.llama = true;
    model.feed_forward = 32;
    model.tied = false;
  }
  return model;
}

Training TrainingOf(Recomputation recomputation, uint64_t document = 0) {
  Training training;
  training.micro_batches = 2;
  training.batch = 8;
  training.sequence = 8;
  training.document = document;
  training.recomputation = recomputation;
  if (recomputation == Recomputation::kSelective)
    training.recomputed_ops = {.activations = true, .norms = true};
  return training;
}

std::vector<Strategy> Strategies(const Network& network) {
  std::vector<Strategy> strategies = {
      MakeMegatron({.tensor = 2, .data = 2}, network),
      MakeMegatron({.tensor = 4, .data = 1, .sequence_parallel = true}, network),
      MakeFourD({.column = 2, .row = 2, .depth = 2}, network),
      MakeAtp({.d1 = 2, .d2 = 2, .chunks = 2}, network)};
  for (const uint32_t stage : {1u, 2u, 3u}) {
    ZeroOptions zero;
    zero.shard = 2;
    zero.stage = stage;
    zero.by_layer = stage == 3;
    zero.prefetch = stage == 3 ? 1 : 0;
    strategies.push_back(MakeZero(zero, network));
  }
  return strategies;
}

void ExpectSerialNumbers(const Network& network, const Training& training,
                         const Strategy& strategy) {
  const StepNumbers serial =
      ComputeSerially(PlanSerialStep(network, training, strategy.chunks), kSeed);
  const Schedule schedule = PlanStep(network, training, strategy);
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

TEST(AdapterExecutionTest, EveryStrategyGivesTheSerialNumbers) {
  const std::vector<LoraTargets> targets = {
      {true, true, true, true}, {true, false, false, false}, {false, true, false, true}};
  for (const bool llama : {false, true}) {
    for (const LoraTargets& on : targets) {
      const bool is_all = on.qkv && on.down;
      for (const Recomputation recomputation :
           {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
        if ((!is_all || kIsSanitized) && recomputation != Recomputation::kFull) continue;
        const Training training = TrainingOf(recomputation);
        const Network network = MakeDecoder(Decoder(llama, LoraAdapters{4, on}), training);
        for (const Strategy& strategy : Strategies(network)) {
          SCOPED_TRACE(fmt::format("{}, {}, on qkv {}, recomputation {}", strategy.name,
                                   llama ? "llama" : "gpt", on.qkv,
                                   static_cast<int>(recomputation)));
          ExpectSerialNumbers(network, training, strategy);
        }
      }
    }
  }
}

TEST(AdapterExecutionTest, StagesGiveTheSerialNumbers) {
  Training training = TrainingOf(Recomputation::kFull);
  training.micro_batches = 4;
  GptModel model = Decoder(true, LoraAdapters{4});
  model.layers = 4;
  const Network network = MakeDecoder(model, training);
  const StepNumbers serial = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 1}, network);
  const Schedule schedule = PlanStages(network, training, strategy, EvenStages(network, 2),
                                       OneForwardOneBackward(2, training.micro_batches));
  CheckSchedule(schedule);
  const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

// Of other data, everything else becomes something else.
TEST(AdapterExecutionTest, WhatIsFrozenStays) {
  Training training = TrainingOf(Recomputation::kNone);
  const GptModel model = Decoder(true, LoraAdapters{4});
  const StepNumbers one =
      ComputeSerially(PlanSerialStep(MakeDecoder(model, training), training, 1), kSeed);
  training.batch *= 2;
  const StepNumbers other =
      ComputeSerially(PlanSerialStep(MakeDecoder(model, training), training, 1), kSeed);
  uint32_t frozen = 0;
  uint32_t trained = 0;
  for (const auto& [name, array] : one.arrays) {
    const bool is_adapter =
        name.find(" A") != std::string::npos || name.find(" B") != std::string::npos;
    const bool is_gradient = name.find("gradient") != std::string::npos;
    if (is_gradient) {
      EXPECT_TRUE(is_adapter || name.find("gain") != std::string::npos) << name;
      continue;
    }
    const bool is_equal = array.values == other.arrays.at(name).values;
    EXPECT_EQ(is_equal, !is_adapter) << name;
    ++(is_adapter ? trained : frozen);
  }
  EXPECT_EQ(trained, 2u * 4 * 2);     // A and B, beside four products of two layers
  EXPECT_GE(frozen, 2u + 4 * 2 + 5);  // tables, products, gains
}

TEST(PackedDocumentsTest, EveryStrategyGivesTheSerialNumbers) {
  for (const bool llama : {false, true}) {
    const Training training = TrainingOf(Recomputation::kNone, 4);
    const Network network = MakeDecoder(Decoder(llama, std::nullopt), training);
    for (const Strategy& strategy : Strategies(network)) {
      SCOPED_TRACE(strategy.name);
      ExpectSerialNumbers(network, training, strategy);
    }
  }
}

TEST(ParallelBlocksTest, EveryStrategyGivesTheSerialNumbers) {
  for (const bool llama : {false, true}) {
    for (const ParallelBlocks parallel : {ParallelBlocks::kOneNorm, ParallelBlocks::kTwoNorms}) {
      GptModel model = Decoder(llama, std::nullopt);
      model.parallel = parallel;
      EXPECT_EQ(MakeDecoder(model, TrainingOf(Recomputation::kNone)).Parameters(),
                model.Parameters());
      for (const Recomputation recomputation :
           {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
        if (kIsSanitized && recomputation != Recomputation::kFull) continue;
        const Training training = TrainingOf(recomputation);
        const Network network = MakeDecoder(model, training);
        for (const Strategy& strategy : Strategies(network)) {
          SCOPED_TRACE(
              fmt::format("{}, recomputation {}", strategy.name, static_cast<int>(recomputation)));
          ExpectSerialNumbers(network, training, strategy);
        }
      }
    }
  }
}

// What adapters add does not lie as what they are added to.
TEST(ParallelBlocksTest, AdaptersGiveTheSerialNumbers) {
  GptModel model = Decoder(true, LoraAdapters{4});
  model.parallel = ParallelBlocks::kOneNorm;
  const Training training = TrainingOf(Recomputation::kFull);
  const Network network = MakeDecoder(model, training);
  for (const Strategy& strategy : Strategies(network)) {
    SCOPED_TRACE(strategy.name);
    ExpectSerialNumbers(network, training, strategy);
  }
}

// Gradients of weights come in actions of their own, after what both products share is summed.
TEST(ParallelBlocksTest, StagesThatPutOffWeightsGiveTheSerialNumbers) {
  Training training = TrainingOf(Recomputation::kNone);
  training.micro_batches = 4;
  for (const bool sequence_parallel : {false, true}) {
    GptModel model = Decoder(false, std::nullopt);
    model.layers = 4;
    model.parallel = ParallelBlocks::kOneNorm;
    const Network network = MakeDecoder(model, training);
    const StepNumbers serial = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
    const Strategy strategy =
        MakeMegatron({.tensor = 2, .data = 1, .sequence_parallel = sequence_parallel}, network);
    const Schedule schedule = PlanStages(network, training, strategy, EvenStages(network, 2),
                                         ZeroBubbleH1(2, training.micro_batches));
    CheckSchedule(schedule);
    CheckBuffers(schedule);
    const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
    EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
  }
}

// Two documents of four tokens are what two sequences of four tokens are.
TEST(PackedDocumentsTest, AreShorterSequences) {
  Training packed = TrainingOf(Recomputation::kNone, 4);
  Training apart = TrainingOf(Recomputation::kNone);
  apart.sequence = 4;
  apart.batch = 2 * packed.batch;
  const GptModel model = Decoder(true, std::nullopt);
  const StepNumbers one =
      ComputeSerially(PlanSerialStep(MakeDecoder(model, packed), packed, 1), kSeed);
  const StepNumbers other =
      ComputeSerially(PlanSerialStep(MakeDecoder(model, apart), apart, 1), kSeed);
  EXPECT_EQ(one.loss, other.loss);
  packed.document = 0;
  EXPECT_NE(ComputeSerially(PlanSerialStep(MakeDecoder(model, packed), packed, 1), kSeed).loss,
            other.loss);
}

}  // namespace adapter_execution_test
}  // namespace rehearse
