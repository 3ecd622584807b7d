// Micro-batches that are stored once: they stand for the schedule with all of them.
#include "workloads/planner/repeated_block.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/repeats.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/fingerprint.h"
#include "tests/support/preset_strategies.h"
#include "topology/presets/presets.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/pipeline.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace repeated_block_test {

using Generator = std::vector<Action> (*)(uint32_t stages, uint32_t micro_batches);

Network Decoder(const Training& training, bool tied) {
  GptModel model;
  model.name = "small";
  model.layers = 4;
  model.hidden = 48;
  model.heads = 8;
  model.vocabulary = 96;
  model.tied = tied;
  return MakeDecoder(model, training);
}

Training TrainingOf(uint32_t micro_batches, Recomputation recomputation) {
  Training training;
  training.batch = 8 * micro_batches;
  training.sequence = 8;
  training.micro_batches = micro_batches;
  training.recomputation = recomputation;
  return training;
}

std::vector<Strategy> Strategies(const Network& network) {
  ZeroOptions zero{.shard = 2, .replicas = 2, .stage = 1};
  zero.overlap_all_reduce = true;
  ZeroOptions fsdp{.shard = 4};
  fsdp.prefetch = 2;
  ZeroOptions kept{.shard = 2};
  kept.reshard_after_forward = false;
  kept.by_layer = true;
  FourDOptions four_d{.column = 2, .row = 2, .depth = 2};
  four_d.cached_layers = 1;
  MegatronOptions megatron{.tensor = 2, .data = 2};
  megatron.sequence_parallel = true;
  megatron.overlap_gradients = true;
  AtpOptions atp{.d1 = 2, .d2 = 2};
  atp.chunks = 2;
  return {MakeDataParallel(2, true, network),
          MakeZero(zero, network),
          MakeZero(fsdp, network),
          MakeZero(kept, network),
          MakeFourD(four_d, network),
          MakeMegatron(megatron, network),
          MakeAtp(atp, network),
          MakeSumma({.q = 2}, network)};
}

// The same with every micro-batch planned.
std::string FingerprintOfAll(const Network& network, const Training& training,
                             const Strategy& strategy, uint32_t stages, Generator generate) {
  return FingerprintOf(PlanStages(network, training, strategy, EvenStages(network, stages),
                                  generate(stages, network.micro_batches), {},
                                  network.micro_batches));
}

TEST(RepeatedBlockTest, WhatIsKeptOnceMeansWhatIsPlannedInFull) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    for (const uint32_t micro_batches : {9u, 23u}) {
      const Training training = TrainingOf(micro_batches, recomputation);
      const Network network = Decoder(training, recomputation == Recomputation::kNone);
      for (const Strategy& strategy : Strategies(network)) {
        for (const Generator generate : {OneAfterAnother, OneForwardOneBackward, ZeroBubbleH1}) {
          for (const uint32_t stages : {1u, 2u, 4u}) {
            SCOPED_TRACE(fmt::format("{}, {} stages", strategy.name, stages));
            const Schedule schedule =
                PlanStages(network, training, strategy, EvenStages(network, stages),
                           generate(stages, micro_batches));
            // As many micro-batches as are in flight are planned on either side, and a few more.
            if (micro_batches > 4 * stages + stages) {
              for (const Role& role : schedule.roles) EXPECT_EQ(role.repeats.size(), 1u);
            }
            for (const Role& role : schedule.roles) CheckRepeats(role);
            EXPECT_EQ(FingerprintOf(Expanded(schedule)),
                      FingerprintOfAll(network, training, strategy, stages, generate));
          }
        }
      }
    }
  }
}

// In all orders of a pipeline, of which some take rounds of as many micro-batches as there are
// ranks, and with messages in batches.
TEST(RepeatedBlockTest, WhateverTheOrder) {
  const Training training = TrainingOf(48, Recomputation::kNone);
  const Network network = Decoder(training, true);
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 1}, network);
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kInterleaved,
        PipelineSchedule::kZeroBubbleH1, PipelineSchedule::kZeroBubbleH2,
        PipelineSchedule::kZeroBubble2p, PipelineSchedule::kZeroBubbleV,
        PipelineSchedule::kDualPipe, PipelineSchedule::kDualPipeV}) {
    SCOPED_TRACE(static_cast<int>(schedule));
    const bool has_two = schedule == PipelineSchedule::kInterleaved ||
                         schedule == PipelineSchedule::kZeroBubbleV ||
                         schedule == PipelineSchedule::kDualPipeV;
    const PipelineOrder order = OrderOf(schedule, 2, has_two ? 2 : 1, 48, {});
    StagePipeline pipeline = {order.places, EvenStages(network, order.places.stages_of_copy()),
                              order.actions};
    for (const bool batches_messages : {false, true}) {
      pipeline.batches_messages = batches_messages;
      pipeline.overlaps_messages = !batches_messages;
      const Schedule planned = PlanPipeline(network, training, strategy, pipeline);
      for (const Role& role : planned.roles) EXPECT_EQ(role.repeats.size(), 1u);
      EXPECT_EQ(FingerprintOf(Expanded(planned)),
                FingerprintOf(PlanPipeline(network, training, strategy, pipeline, {}, 48)));
    }
  }
}

TEST(RepeatedBlockTest, ThousandsOfMicroBatchesArePlannedAndCheckedAsAFewAre) {
  const auto plan = [](uint32_t micro_batches) {
    const Training training = TrainingOf(micro_batches, Recomputation::kFull);
    const Network network = Decoder(training, true);
    return PlanStages(network, training, MakeDataParallel(2, false, network),
                      EvenStages(network, 4), OneForwardOneBackward(4, micro_batches));
  };
  const Schedule few = plan(32);
  const Schedule many = plan(4096);
  CheckSchedule(many);
  CheckBuffers(many);
  for (uint32_t stage = 0; stage < 4; ++stage) {
    const Role& role = many.roles[stage];
    // Blocks are of one micro-batch, and refer to as many before it as the stage has in flight.
    ASSERT_EQ(role.repeats.size(), 1u);
    EXPECT_EQ(role.repeats[0].micro_batches, 1);
    EXPECT_EQ(role.repeats[0].back, 4 - stage);
    EXPECT_EQ(role.repeats[0].times, few.roles[stage].repeats[0].times + (4096 - 32));
    EXPECT_EQ(role.ops.size(), few.roles[stage].ops.size());
    EXPECT_EQ(MemoryOf(role).Total(), MemoryOf(few.roles[stage]).Total());
  }
}

TEST(RepeatedBlockTest, ATimelineDoesNotShowWhatIsKeptOnce) {
  const Training training = TrainingOf(24, Recomputation::kNone);
  const Network network = Decoder(training, true);
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 1}, network);
  const auto play = [&](uint32_t few_micro_batches) {
    const Schedule schedule = PlanStages(network, training, strategy, EvenStages(network, 2),
                                         OneForwardOneBackward(2, 24), {}, few_micro_batches);
    const auto cluster = BuildPreset("switch", {{"devices", 4}}, {});
    Router router(*cluster);
    return HashOf(Simulate(Lower(schedule, router).program, 4).timeline);
  };
  EXPECT_EQ(play(kFewMicroBatches), play(24));
}

TEST(RepeatedBlockTest, WhatDoesNotRepeatIsPlannedInFull) {
  // GPipe keeps all micro-batches before the first goes back: no block of them follows another.
  const Training training = TrainingOf(16, Recomputation::kNone);
  const Network network = Decoder(training, true);
  const Schedule schedule = PlanStages(network, training, MakeDataParallel(1, false, network),
                                       EvenStages(network, 2), GPipe(2, 16));
  for (const Role& role : schedule.roles) EXPECT_TRUE(role.repeats.empty());
}

TEST(RepeatedBlockTest, ThePeriodBeginsBehindTheFirstAndEndsBeforeTheLast) {
  // Stage 0 of two: F0 F1 B0 F2 B1 ... F9 B8 B9, synchronise, update. From F1 on, what comes two
  // later is the same for the next micro-batch, up to B8.
  const std::vector<Action> own = OfStage(OneForwardOneBackward(2, 10), 0);
  const auto period = FindPeriod(own, 2);
  ASSERT_TRUE(period.has_value());
  EXPECT_EQ(period->begin, 1u);
  EXPECT_EQ(period->end, 19u);
  EXPECT_EQ(period->length, 4u);
  // 18 actions are four blocks of 4 and a half.
  EXPECT_FALSE(FindPeriod(own, 3).has_value());
}

}  // namespace repeated_block_test
}  // namespace rehearse
