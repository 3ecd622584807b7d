// Pipelines on real numbers: one training step on thread ranks gives the loss, all gradients and
// the updated parameters of the serial step, whatever the order of the actions and the strategy
// inside a stage.
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/unet_network.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace pipeline_execution_test {

// Double has 16 digits; sums in another order and a few hundred operations cost at most six of
// them.
constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 11;

using Generator = std::vector<Action> (*)(uint32_t stages, uint32_t micro_batches);

struct Order {
  const char* name;
  Generator generate;
};
constexpr Order kOrders[] = {{"one after another", OneAfterAnother},
                             {"GPipe", GPipe},
                             {"1F1B", OneForwardOneBackward},
                             {"ZB-H1", ZeroBubbleH1}};

Training TrainingOf(uint32_t micro_batches, Recomputation recomputation) {
  Training training;
  training.micro_batches = micro_batches;
  training.batch = 4 * micro_batches;
  training.sequence = 4;
  training.recomputation = recomputation;
  return training;
}

Network Decoder(const Training& training, bool llama) {
  GptModel model;
  model.name = "decoder";
  model.layers = 4;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  if (llama) {
    model.llama = true;
    model.groups = 4;
    model.feed_forward = 32;
    model.tied = false;
  }
  return MakeDecoder(model, training);
}

// The serial step of each network is computed once.
const StepNumbers& SerialNumbers(const std::string& name, const Network& network,
                                 const Training& training, uint32_t chunks) {
  static std::map<std::string, StepNumbers> known;
  const std::string key = fmt::format("{} {} {} {}", name, training.micro_batches,
                                      static_cast<int>(training.recomputation), chunks);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Schedule serial = PlanSerialStep(network, training, chunks);
  return known.emplace(key, ComputeSerially(serial, kSeed)).first->second;
}

void ExpectSerialNumbers(const std::string& name, const Network& network, const Training& training,
                         const Strategy& strategy, const StagePipeline& pipeline) {
  const Schedule schedule = PlanPipeline(network, training, strategy, pipeline);
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const StepNumbers& serial = SerialNumbers(name, network, training, strategy.chunks);
  const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

void ExpectSerialNumbers(const std::string& name, const Network& network, const Training& training,
                         const Strategy& strategy, const std::vector<uint32_t>& units_of_stage,
                         const std::vector<Action>& actions) {
  const auto stages = static_cast<uint32_t>(units_of_stage.size());
  ExpectSerialNumbers(name, network, training, strategy,
                      {OneStageARank(stages), units_of_stage, actions});
}

// Every order, on this many stages of a decoder.
void ExpectEveryOrderGivesSerialNumbers(const Training& training, bool llama, uint32_t stages,
                                        Strategy (*make)(const Network& network)) {
  const Network network = Decoder(training, llama);
  const Strategy strategy = make(network);
  for (const Order& order : kOrders) {
    SCOPED_TRACE(fmt::format("{}, {} stages, {}", order.name, stages, strategy.name));
    ExpectSerialNumbers(llama ? "llama" : "gpt", network, training, strategy,
                        EvenStages(network, stages),
                        order.generate(stages, training.micro_batches));
  }
}

// Gradients of such a network are clipped, and more by the whole norm than by the first ranks'.
TEST(PipelineExecutionTest, UpdatesAreDoneAgainWhereTheWholeNormClipsMore) {
  const Training training = TrainingOf(4, Recomputation::kNone);
  const Network network = Decoder(training, false);
  const Strategy one = MakeDataParallel(1, false, network);
  const Strategy two = MakeMegatron({.tensor = 2, .data = 2}, network);
  for (const AdamAgain validation : {kAdamIfClipped, kAdamTwice}) {
    for (const Strategy* strategy : {&one, &two}) {
      for (const uint32_t stages : {2u, 4u}) {
        StagePipeline pipeline = {OneStageARank(stages), EvenStages(network, stages),
                                  ZeroBubbleH1(stages, 4)};
        pipeline.validation = validation;
        ExpectSerialNumbers("gpt", network, training, *strategy, pipeline);
      }
      StagePipeline v = {VShaped(2), EvenStages(network, 4), ZeroBubbleV(2, 4)};
      v.validation = validation;
      ExpectSerialNumbers("gpt", network, training, *strategy, v);
      StagePipeline both = {BothWays(2), EvenStages(network, 2), DualPipe(2, 4)};
      both.validation = validation;
      ExpectSerialNumbers("gpt", network, training, *strategy, both);
    }
  }
}

TEST(PipelineExecutionTest, SharesThatAreGatheredAfterTheUpdateCannotBePutRight) {
  const Training training = TrainingOf(4, Recomputation::kNone);
  const Network network = Decoder(training, false);
  StagePipeline pipeline = {OneStageARank(2), EvenStages(network, 2), ZeroBubbleH1(2, 4)};
  pipeline.validation = kAdamIfClipped;
  ZeroOptions options;
  options.shard = 2;
  options.stage = 3;
  ExpectSerialNumbers("gpt", network, training, MakeZero(options, network), pipeline);
  options.stage = 1;
  try {
    PlanPipeline(network, training, MakeZero(options, network), pipeline);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("stages 0 and 3 can do it"), std::string::npos);
  }
}

TEST(PipelineExecutionTest, OneRankAStageWithATiedTable) {
  for (const Recomputation recomputation :
       {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
    for (const uint32_t stages : {2u, 3u, 4u}) {
      ExpectEveryOrderGivesSerialNumbers(
          TrainingOf(5, recomputation), false, stages,
          [](const Network& network) { return MakeDataParallel(1, false, network); });
    }
  }
}

TEST(PipelineExecutionTest, DataParallelStages) {
  for (const bool llama : {false, true}) {
    ExpectEveryOrderGivesSerialNumbers(
        TrainingOf(4, Recomputation::kNone), llama, 4,
        [](const Network& network) { return MakeDataParallel(2, true, network); });
  }
}

TEST(PipelineExecutionTest, TensorParallelStages) {
  ExpectEveryOrderGivesSerialNumbers(TrainingOf(4, Recomputation::kFull), false, 2,
                                     [](const Network& network) {
                                       MegatronOptions options{.tensor = 2, .data = 2};
                                       options.sequence_parallel = true;
                                       options.distributed_optimizer = true;
                                       return MakeMegatron(options, network);
                                     });
  ExpectEveryOrderGivesSerialNumbers(TrainingOf(4, Recomputation::kNone), true, 4,
                                     [](const Network& network) {
                                       MegatronOptions options{.tensor = 4, .data = 1};
                                       options.overlap_gradients = true;
                                       return MakeMegatron(options, network);
                                     });
}

// The token ahead is predicted on the last stage, with the first stage's table.
TEST(PipelineExecutionTest, LatentAttentionAndATokenAhead) {
  for (const uint32_t tensor : {1u, 2u}) {
    for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
      const Training training = TrainingOf(4, recomputation);
      GptModel model;
      model.name = "latent decoder";
      model.layers = 4;
      model.hidden = 16;
      model.heads = 4;
      model.vocabulary = 32;
      model.llama = true;
      model.feed_forward = 32;
      model.tied = false;
      model.latent = LatentAttention{6, 4, 2, 3, 4};
      model.predict_ahead = 1;
      const Network network = MakeDecoder(model, training);
      const Strategy strategy =
          MakeMegatron({.tensor = tensor, .data = 2, .distributed_optimizer = true}, network);
      for (const Order& order : kOrders) {
        SCOPED_TRACE(fmt::format("{}, tensor {}", order.name, tensor));
        ExpectSerialNumbers("latent", network, training, strategy, EvenStages(network, 2),
                            order.generate(2, training.micro_batches));
      }
    }
  }
}

TEST(PipelineExecutionTest, FourDimensionalStages) {
  for (const bool llama : {false, true}) {
    ExpectEveryOrderGivesSerialNumbers(TrainingOf(3, Recomputation::kFull), llama, 2,
                                       [](const Network& network) {
                                         FourDOptions options;
                                         options.column = 2;
                                         options.row = 2;
                                         options.depth = 2;
                                         options.cached_layers = 1;
                                         return MakeFourD(options, network);
                                       });
  }
}

template <uint32_t kStage>
Strategy Sharded(const Network& network) {
  ZeroOptions options{.shard = 2, .replicas = 2, .stage = kStage};
  options.reshard_after_forward = false;
  options.overlap_all_reduce = true;
  return MakeZero(options, network);
}

TEST(PipelineExecutionTest, ShardedStages) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    const Training training = TrainingOf(4, recomputation);
    for (const auto make : {Sharded<1>, Sharded<2>, Sharded<3>}) {
      ExpectEveryOrderGivesSerialNumbers(training, false, 2, make);
    }
    ExpectEveryOrderGivesSerialNumbers(training, true, 4, [](const Network& network) {
      ZeroOptions options{.shard = 2};
      options.by_layer = true;
      return MakeZero(options, network);
    });
  }
}

TEST(PipelineExecutionTest, WeightsAndGradientsStayWholeUntilTheLastMicroBatch) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    ExpectEveryOrderGivesSerialNumbers(TrainingOf(6, recomputation), true, 2,
                                       [](const Network& network) {
                                         ZeroOptions options{.shard = 2, .replicas = 2};
                                         options.by_layer = true;
                                         options.reshard_after_forward = false;
                                         options.until_last_micro_batch = true;
                                         options.reduces_in_fp32 = true;
                                         options.copies = ShardCopies::kPerParameter;
                                         return MakeZero(options, network);
                                       });
  }
}

TEST(PipelineExecutionTest, TheBackwardPassGathersFromNearShares) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    ExpectEveryOrderGivesSerialNumbers(TrainingOf(3, recomputation), true, 2,
                                       [](const Network& network) {
                                         ZeroOptions options{.shard = 4};
                                         options.backward_within = 2;
                                         options.copies = ShardCopies::kBuckets;
                                         return MakeZero(options, network);
                                       });
  }
}

TEST(PipelineExecutionTest, StagesInChunksAndInRounds) {
  ExpectEveryOrderGivesSerialNumbers(TrainingOf(3, Recomputation::kNone), false, 2,
                                     [](const Network& network) {
                                       AtpOptions options;
                                       options.d1 = 2;
                                       options.d2 = 2;
                                       options.chunks = 2;
                                       return MakeAtp(options, network);
                                     });
  ExpectEveryOrderGivesSerialNumbers(TrainingOf(3, Recomputation::kFull), true, 2,
                                     [](const Network& network) {
                                       SummaOptions options;
                                       options.q = 2;
                                       options.overlap_panels = true;
                                       return MakeSumma(options, network);
                                     });
}

TEST(PipelineExecutionTest, WeightGradientsOfOneStageMayBePutOffToo) {
  // All of them after all input gradients: as late as they can be.
  const Training training = TrainingOf(3, Recomputation::kFull);
  const Network network = Decoder(training, false);
  std::vector<Action> actions;
  for (const ActionKind kind : {ActionKind::kForward, ActionKind::kRecompute,
                                ActionKind::kInputGradient, ActionKind::kWeightGradient}) {
    for (uint32_t index = 0; index < 3; ++index) actions.push_back({0, index, kind});
  }
  actions.push_back({0, 0, ActionKind::kSynchronize});
  actions.push_back({0, 0, ActionKind::kUpdate});
  const auto units = static_cast<uint32_t>(UnitsOf(network).size());
  for (const Strategy& strategy :
       {MakeDataParallel(2, true, network), MakeFourD({.column = 2, .row = 2}, network),
        MakeZero({.shard = 4}, network)}) {
    SCOPED_TRACE(strategy.name);
    ExpectSerialNumbers("gpt", network, training, strategy, {units}, actions);
  }
}

TEST(PipelineExecutionTest, MicroBatchesThatAreKeptOnceAreAllExecuted) {
  const Training training = TrainingOf(21, Recomputation::kNone);
  const Network network = Decoder(training, false);
  for (const uint32_t stages : {1u, 3u}) {
    const Strategy strategy = MakeZero({.shard = 2}, network);
    const auto actions = OneForwardOneBackward(stages, 21);
    const std::vector<uint32_t> cut = EvenStages(network, stages);
    for (const Role& role : PlanStages(network, training, strategy, cut, actions).roles) {
      EXPECT_EQ(role.repeats.size(), 1u);
    }
    ExpectSerialNumbers("gpt", network, training, strategy, cut, actions);
  }
}

TEST(PipelineExecutionTest, SkipConnectionsPassThroughStages) {
  UnetModel model;
  model.name = "u-net";
  model.channels = 12;
  model.multipliers = {1, 2};
  model.blocks = 1;
  model.image = 4;
  model.attention = {2};
  model.head_size = 2;
  model.groups = 6;
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    const Training training = TrainingOf(3, recomputation);
    const Network network = MakeUnet(model, training);
    const auto units = static_cast<uint32_t>(UnitsOf(network).size());
    const std::vector<uint32_t> cut = {units / 3, units / 3, units - units / 3 * 2};
    for (const Order& order : kOrders) {
      SCOPED_TRACE(order.name);
      ExpectSerialNumbers("u-net", network, training,
                          MakeFourD({.column = 2, .row = 1, .depth = 2}, network), cut,
                          order.generate(3, training.micro_batches));
    }
  }
}

// ---- every schedule by its name -----------------------------------------------------------------

void ExpectEveryScheduleGivesSerialNumbers(const Training& training, bool llama, uint32_t ranks,
                                           Strategy (*make)(const Network& network)) {
  const Network network = Decoder(training, llama);
  const Strategy strategy = make(network);
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    const uint32_t a_rank = facts.most_stages_a_rank == 0 ? 2 : facts.most_stages_a_rank;
    SCOPED_TRACE(fmt::format("{} on {} ranks, {}", facts.name, ranks, strategy.name));
    const PipelineOrder order = OrderOf(facts.schedule, ranks, a_rank, training.micro_batches,
                                        TimesByFlops(network, training));
    ExpectSerialNumbers(
        llama ? "llama" : "gpt", network, training, strategy,
        {order.places, EvenStages(network, order.places.stages_of_copy()), order.actions});
  }
}

TEST(PipelineExecutionTest, EveryScheduleOfDataParallelStages) {
  // Tied and not: embedding and output layer are on one rank of a V, on both of two copies.
  for (const bool llama : {false, true}) {
    for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
      ExpectEveryScheduleGivesSerialNumbers(
          TrainingOf(4, recomputation), llama, 2,
          [](const Network& network) { return MakeDataParallel(2, true, network); });
    }
  }
}

TEST(PipelineExecutionTest, EveryScheduleOfShardedStages) {
  for (const uint32_t stage : {1u, 2u, 3u}) {
    const Training training = TrainingOf(6, Recomputation::kNone);
    const Network network = Decoder(training, stage == 2);
    ZeroOptions options{.shard = 2, .replicas = 1};
    options.stage = stage;
    options.prefetch = 1;
    options.reshard_after_forward = stage == 3;
    options.overlap_all_reduce = true;
    const Strategy strategy = MakeZero(options, network);
    for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
      const uint32_t a_rank = facts.most_stages_a_rank == 0 ? 2 : facts.most_stages_a_rank;
      SCOPED_TRACE(fmt::format("{}, stage {} of ZeRO", facts.name, stage));
      const PipelineOrder order = OrderOf(facts.schedule, 2, a_rank, 6, {});
      ExpectSerialNumbers(
          stage == 2 ? "llama" : "gpt", network, training, strategy,
          {order.places, EvenStages(network, order.places.stages_of_copy()), order.actions});
    }
  }
}

TEST(PipelineExecutionTest, ManyMicroBatchesOfSeveralStagesARankAreKeptOnce) {
  const Training training = TrainingOf(24, Recomputation::kNone);
  const Network network = Decoder(training, true);
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 1}, network);
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kInterleaved, PipelineSchedule::kZeroBubbleV,
        PipelineSchedule::kZeroBubble2p, PipelineSchedule::kDualPipe}) {
    const bool has_two =
        schedule == PipelineSchedule::kInterleaved || schedule == PipelineSchedule::kZeroBubbleV;
    const PipelineOrder order = OrderOf(schedule, 2, has_two ? 2 : 1, 24, {});
    const StagePipeline pipeline = {
        order.places, EvenStages(network, order.places.stages_of_copy()), order.actions};
    SCOPED_TRACE(static_cast<int>(schedule));
    ExpectSerialNumbers("llama", network, training, strategy, pipeline);
    if (schedule != PipelineSchedule::kInterleaved) continue;
    StagePipeline in_batches = pipeline;
    in_batches.batches_messages = true;
    ExpectSerialNumbers("llama", network, training, strategy, in_batches);
    const Schedule planned = PlanPipeline(network, training, strategy, pipeline);
    for (const Role& role : planned.roles) EXPECT_EQ(role.repeats.size(), 1u);
  }
}

TEST(PipelineExecutionTest, StagesOfARankAreGatheredAndSummedWhole) {
  for (const uint32_t micro_batches : {4u, 24u}) {
    const Training training = TrainingOf(micro_batches, Recomputation::kNone);
    const Network network = Decoder(training, true);
    MegatronOptions options{.tensor = 1, .data = 2, .distributed_optimizer = true};
    options.overlap_gradients = true;
    options.overlap_parameter_gathers = true;
    const PipelineOrder order = OrderOf(PipelineSchedule::kInterleaved, 2, 2, micro_batches, {});
    SCOPED_TRACE(micro_batches);
    ExpectSerialNumbers(
        "llama", network, training, MakeMegatron(options, network),
        {order.places, EvenStages(network, order.places.stages_of_copy()), order.actions});
  }
}

TEST(PipelineExecutionTest, PartsThatRanksSendOfWhatAllHold) {
  // Megatron-LM's scatter/gather, and kernels that wait for their messages.
  const Training training = TrainingOf(4, Recomputation::kFull);
  const Network network = Decoder(training, false);
  const Strategy strategy = MakeMegatron({.tensor = 2, .data = 2}, network);
  for (const bool overlaps : {false, true}) {
    StagePipeline pipeline = {
        OneStageARank(2), EvenStages(network, 2), OneForwardOneBackward(2, 4), overlaps, {0}};
    ExpectSerialNumbers("gpt", network, training, strategy, pipeline);
    const Schedule scattered = PlanPipeline(network, training, strategy, pipeline);
    pipeline.scattered_axes.clear();
    const Schedule whole = PlanPipeline(network, training, strategy, pipeline);
    const auto sent = [](const Schedule& schedule) {
      double bytes = 0;
      for (const Op& op : schedule.roles[0].ops) {
        if (const auto* send = std::get_if<Send>(&op.work)) bytes += send->bytes.value();
      }
      return bytes;
    };
    EXPECT_EQ(2 * sent(scattered), sent(whole));
  }
}

}  // namespace pipeline_execution_test
}  // namespace rehearse
