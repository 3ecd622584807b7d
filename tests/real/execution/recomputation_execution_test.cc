// Dropping and recomputing changes no number, be it some ops of each layer or some layers of each
// stage, under every kind of strategy; and what it saves and costs.
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace recomputation_execution_test {

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 3;

enum class Style { kGpt, kLlama, kLatent };

Network Decoder(const Training& training, Style style) {
  GptModel model;
  model.name = "decoder";
  model.layers = 4;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  if (style != Style::kGpt) {
    model.llama = true;
    model.feed_forward = 32;
    model.tied = false;
  }
  if (style == Style::kLatent) model.latent = LatentAttention{6, 4, 2, 2, 4};
  return MakeDecoder(model, training);
}

Training TrainingOf(uint32_t micro_batches) {
  Training training;
  training.micro_batches = micro_batches;
  training.batch = 4 * micro_batches;
  training.sequence = 4;
  training.recomputation = Recomputation::kNone;
  return training;
}

void ExpectSerialNumbers(const Schedule& schedule, const StepNumbers& serial) {
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

StepNumbers Serial(const Network& network, const Training& training, uint32_t chunks = 1) {
  return ComputeSerially(PlanSerialStep(network, training, chunks), kSeed);
}

std::vector<Strategy> Strategies(const Network& network, bool shares_sequences) {
  std::vector<Strategy> strategies;
  strategies.push_back(MakeMegatron({.tensor = 2, .data = 2}, network));
  strategies.push_back(MakeMegatron({.tensor = 2, .data = 2, .sequence_parallel = true}, network));
  ZeroOptions zero;
  zero.shard = 4;
  zero.by_layer = true;
  zero.prefetch = 1;
  strategies.push_back(MakeZero(zero, network));
  strategies.push_back(MakeFourD({.column = 2, .row = 2, .depth = 2}, network));
  strategies.push_back(MakeAtp({.d1 = 2, .d2 = 2, .chunks = 2}, network));
  if (!shares_sequences) return strategies;
  CombinedOptions combined;
  combined.context = 2;
  combined.tensor = 2;
  combined.sequence_parallel = true;
  strategies.push_back(MakeCombined(combined, network));
  return strategies;
}

TEST(RecomputationExecutionTest, OpsThatAreMadeAgainGiveTheSerialNumbers) {
  for (const Style style : {Style::kGpt, Style::kLlama, Style::kLatent}) {
    Training training = TrainingOf(2);
    const Network network = Decoder(training, style);
    std::map<uint32_t, StepNumbers> serial;  // by chunks
    for (const uint32_t ops : {1u, 2u, 4u, 8u, 16u, 32u, 55u, 63u, 64u, 128u, 182u}) {
      if (ops == 8 && style != Style::kLatent) continue;
      training.recomputation = Recomputation::kSelective;
      training.recomputed_ops = {(ops & 1) != 0,  (ops & 2) != 0,  (ops & 4) != 0,
                                 (ops & 8) != 0,  (ops & 16) != 0, (ops & 32) != 0,
                                 (ops & 64) != 0, (ops & 128) != 0};
      const std::vector<Strategy> strategies = Strategies(network, style != Style::kLatent);
      for (const Strategy& strategy : strategies) {
        SCOPED_TRACE(
            fmt::format("ops {}: {}, style {}", ops, strategy.name, static_cast<int>(style)));
        if (serial.count(strategy.chunks) == 0)
          serial[strategy.chunks] = Serial(network, TrainingOf(2), strategy.chunks);
        ExpectSerialNumbers(PlanStep(network, training, strategy), serial[strategy.chunks]);
      }
    }
  }
}

TEST(RecomputationExecutionTest, SomeLayersOfEachStageGiveTheSerialNumbers) {
  Training training = TrainingOf(4);
  const Network network = Decoder(training, Style::kLlama);
  const StepNumbers serial = Serial(network, training);
  training.recomputation = Recomputation::kFull;
  const Strategy strategy = MakeMegatron({.tensor = 1, .data = 2}, network);
  for (const auto& layers : std::vector<std::vector<uint32_t>>{{0}, {1}, {2, 0}, {1, 2}}) {
    training.recomputed_layers = layers;
    ExpectSerialNumbers(PlanStages(network, training, strategy, EvenStages(network, 2),
                                   OneForwardOneBackward(2, 4)),
                        serial);
  }
  training.recomputed_layers = {1, 1, 1};
  EXPECT_THROW(
      PlanStages(network, training, strategy, EvenStages(network, 2), OneForwardOneBackward(2, 4)),
      Error);
}

TEST(RecomputationExecutionTest, WithoutTheLastProductTheNumbersAreTheSame) {
  for (const Style style : {Style::kGpt, Style::kLlama, Style::kLatent}) {
    for (const bool drops : {false, true}) {
      Training training = TrainingOf(2);
      training.dropout = drops;
      const Network network = Decoder(training, style);
      std::map<uint32_t, StepNumbers> serial;  // by chunks
      training.recomputation = Recomputation::kFull;
      for (const Strategy& strategy : Strategies(network, style != Style::kLatent)) {
        SCOPED_TRACE(
            fmt::format("{}, style {}, dropout {}", strategy.name, static_cast<int>(style), drops));
        Training kept = TrainingOf(2);
        kept.dropout = drops;
        if (serial.count(strategy.chunks) == 0)
          serial[strategy.chunks] = Serial(network, kept, strategy.chunks);
        training.recomputes_last_product = true;
        const Schedule whole = PlanStep(network, training, strategy);
        training.recomputes_last_product = false;
        const Schedule early = PlanStep(network, training, strategy);
        ExpectSerialNumbers(early, serial[strategy.chunks]);
        // 4 layers: 8 sequences of 4 tokens, and a product of 64 or 32 with 16 columns.
        const bool has_mask = style == Style::kGpt && drops;
        const double product = 2.0 * 8 * 4 * 16 * (style == Style::kGpt ? 64 : 32);
        EXPECT_DOUBLE_EQ((whole.hardware_flops - early.hardware_flops).value(),
                         has_mask ? 0 : 4 * product);
      }
    }
  }
}

TEST(RecomputationExecutionTest, FlopsAreThoseOfTheLayersThatAreComputedAgain) {
  Training training = TrainingOf(1);
  const Network network = Decoder(training, Style::kLlama);
  const Strategy strategy = MakeDataParallel(1, false, network);
  const auto again = [&](const std::vector<uint32_t>& layers) {
    training.recomputation = Recomputation::kFull;
    training.recomputed_layers = layers;
    const Schedule schedule = PlanStep(network, training, strategy);
    return (schedule.hardware_flops - schedule.model_flops).value();
  };
  const double all = again({});
  EXPECT_GT(all, 0);
  EXPECT_DOUBLE_EQ(again({4}), all);
  EXPECT_DOUBLE_EQ(again({1}), all / 4);  // of 4 layers
  EXPECT_DOUBLE_EQ(again({0}), 0);
}

TEST(RecomputationExecutionTest, WhatIsDroppedTakesNoMemoryBetween) {
  // After the last layer the values of all layers are there. In bf16, with m = 16 rows, a layer's
  // swiglu makes 32 columns, each of its two norms 16. In the backward pass they come back one
  // layer at a time.
  Training training = TrainingOf(1);
  const Network network = Decoder(training, Style::kLlama);
  const Strategy strategy = MakeDataParallel(1, false, network);
  const auto activations = [&](const RecomputedOps& ops) {
    training.recomputation = ops.Any() ? Recomputation::kSelective : Recomputation::kNone;
    training.recomputed_ops = ops;
    const Schedule schedule = PlanStep(network, training, strategy);
    return MemoryOf(schedule.roles[0]).activations;
  };
  const double none = activations({}).value();
  const double swiglus = 16 * 32 * 2;
  const double norms = 2 * 16 * 16 * 2;
  EXPECT_LE(activations({.activations = true}).value(), none - 3 * swiglus);
  EXPECT_LE(activations({.activations = true, .norms = true}).value(),
            none - 3 * (swiglus + norms));
}

}  // namespace recomputation_execution_test
}  // namespace rehearse
