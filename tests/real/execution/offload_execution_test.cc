// Activations and optimizer state that wait on the host change no number, whatever the strategy,
// the pipeline and what is computed again.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "real/backends/rank_plan.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/execution_order.h"
#include "tests/support/preset_strategies.h"
#include "tests/support/sanitizers.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/pipeline_orders.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"

namespace rehearse {
namespace offload_execution_test {

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 3;
constexpr uint32_t kLayers = 8;

Network Decoder(const Training& training, bool llama) {
  GptModel model;
  model.name = "decoder";
  model.layers = kLayers;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  if (llama) {
    model.llama = true;
    model.feed_forward = 32;
    model.tied = false;
  }
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

size_t CopiesIn(const Role& role) {
  return static_cast<size_t>(std::count_if(role.ops.begin(), role.ops.end(),
                                           [](const Op& op) { return IsHostCopy(op.work); }));
}

// On both sides, to the byte.
void ExpectCountedMemory(const Schedule& schedule) {
  const MemoryUse counted = OnThreads(schedule, StreamUse::kBlocking).memory[0];
  const MemoryUse predicted = MemoryOf(schedule.roles[schedule.role_of_rank[0]]);
  EXPECT_EQ(counted.Total(), predicted.Total());
  EXPECT_EQ(counted.optimizer, predicted.optimizer);
  EXPECT_EQ(counted.activations, predicted.activations);
  EXPECT_EQ(counted.host, predicted.host);
}

TEST(OffloadExecutionTest, EveryStrategyGivesTheSerialNumbers) {
  Training training = TrainingOf(2);
  for (const bool llama : {false, true}) {
    const Network network = Decoder(training, llama);
    ZeroOptions zero;
    zero.shard = 4;
    zero.by_layer = true;
    zero.prefetch = 1;
    const std::vector<Strategy> strategies = {
        MakeMegatron({.tensor = 2, .data = 2, .sequence_parallel = true}, network),
        MakeZero(zero, network), MakeFourD({.column = 2, .row = 2, .depth = 2}, network),
        MakeAtp({.d1 = 2, .d2 = 2, .chunks = 2}, network)};
    for (const Strategy& strategy : strategies) {
      const StepNumbers serial = Serial(network, TrainingOf(2), strategy.chunks);
      for (const Recomputation recomputation :
           {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
        for (const uint32_t layers : {1u, 3u, kLayers - 1}) {
          if (kIsSanitized && layers != 3) continue;  // that one moves everything
          SCOPED_TRACE(fmt::format("{}, {} layers, recomputation {}", strategy.name, layers,
                                   static_cast<int>(recomputation)));
          Training own = training;
          own.recomputation = recomputation;
          if (recomputation == Recomputation::kSelective)
            own.recomputed_ops = {.activations = true, .norms = true};
          own.offloaded_layers = layers;
          own.offloaded_optimizer = layers == 3;
          own.moments = layers == 3 ? DType::kBf16 : DType::kFp32;  // then it is two arrays
          const Schedule schedule = PlanStep(network, own, strategy);
          EXPECT_EQ(CopiesIn(schedule.roles[0]),
                    2 * (layers * 2 * strategy.chunks + (layers == 3 ? 1 : 0)));
          ExpectSerialNumbers(schedule, serial);
          if (!llama && layers == 3 && recomputation == Recomputation::kNone &&
              BlockingForm(schedule))
            ExpectCountedMemory(schedule);
        }
      }
    }
  }
}

// ZeRO-Offload and ZeRO-Infinity: the host's Adam gives the numbers of the device's.
TEST(OffloadExecutionTest, AnOptimizerOnTheHostGivesTheSerialNumbers) {
  for (const uint32_t micro_batches : {1u, 3u}) {
    Training training = TrainingOf(micro_batches);
    const Network network = Decoder(training, true);
    const auto zero = [&](uint32_t stage, bool by_layer, ShardCopies copies) {
      ZeroOptions options;
      options.shard = 4;
      options.stage = stage;
      options.by_layer = by_layer;
      options.copies = copies;
      return MakeZero(options, network);
    };
    std::vector<Strategy> strategies = {
        MakeMegatron({.tensor = 2, .data = 2, .sequence_parallel = true}, network),
        MakeFourD({.column = 2, .row = 2, .depth = 2}, network)};
    for (const uint32_t stage : {1u, 2u, 3u})
      strategies.push_back(zero(stage, false, ShardCopies::kNone));
    strategies.push_back(zero(3, true, ShardCopies::kFlat));  // in fp32, as PyTorch's FSDP
    for (const Strategy& strategy : strategies) {
      const StepNumbers serial = Serial(network, TrainingOf(micro_batches), strategy.chunks);
      const bool has_shares = strategy.shard && strategy.shard->stage == 3;
      for (const bool parameters : {false, true}) {
        if (parameters && !has_shares) continue;
        for (const UpdateRule rule : {UpdateRule::kAdam, UpdateRule::kSgd}) {
          if (rule == UpdateRule::kSgd && (parameters || micro_batches > 1)) continue;
          SCOPED_TRACE(fmt::format("{}, {} micro-batches, {}", strategy.name, micro_batches,
                                   parameters ? "parameters, too" : "optimizer"));
          Training own = training;
          own.optimizer_on_host = true;
          own.parameters_on_host = parameters;
          own.update_rule = rule;
          const Schedule schedule = PlanStep(network, own, strategy);
          if (rule == UpdateRule::kAdam) {
            ExpectSerialNumbers(schedule, serial);
          } else {
            Training alone = TrainingOf(micro_batches);
            alone.update_rule = rule;
            ExpectSerialNumbers(schedule, Serial(network, alone));
          }
          if (BlockingForm(schedule)) ExpectCountedMemory(schedule);
        }
      }
    }
  }
}

TEST(OffloadExecutionTest, EveryPipelineGivesTheSerialNumbers) {
  constexpr uint32_t kMicroBatches = 8;
  Training training = TrainingOf(kMicroBatches);
  const Network network = Decoder(training, true);
  const StepNumbers serial = Serial(network, training);
  training.offloaded_layers = 1;
  training.offloaded_optimizer = true;
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 1}, network);
  struct Case {
    const char* name;
    StagePlaces places;
    std::vector<Action> actions;
    bool pairs_passes = false;
  };
  const Case cases[] = {
      {"1F1B", OneStageARank(2), OneForwardOneBackward(2, kMicroBatches)},
      {"GPipe", OneStageARank(4), GPipe(4, kMicroBatches)},
      {"ZB-H1", OneStageARank(2), ZeroBubbleH1(2, kMicroBatches)},
      {"interleaved", Looped(2, 2), Interleaved(2, 2, kMicroBatches)},
      {"ZB-V", VShaped(2), ZeroBubbleV(2, kMicroBatches)},
      {"DualPipe", BothWays(2), DualPipe(2, kMicroBatches), true},
      {"DualPipeV", VShaped(2), DualPipeV(2, kMicroBatches), true},
  };
  for (const Case& own : cases) {
    for (const bool again : {false, true}) {
      SCOPED_TRACE(fmt::format("{}{}", own.name, again ? ", computed again" : ""));
      const uint32_t stages = own.places.stages() / own.places.copies;
      training.recomputation = again ? Recomputation::kFull : Recomputation::kNone;
      StagePipeline pipeline{
          own.places, StagesOfLayers(network, std::vector<uint32_t>(stages, kLayers / stages)),
          own.actions};
      pipeline.pairs_passes = own.pairs_passes;
      const Schedule whole = PlanPipeline(network, training, strategy, pipeline);
      ExpectSerialNumbers(whole, serial);
      // Kept once where micro-batches repeat.
      ExpectSerialNumbers(PlanPipeline(network, training, strategy, pipeline, {}, 2), serial);
    }
  }
}

}  // namespace offload_execution_test
}  // namespace rehearse
