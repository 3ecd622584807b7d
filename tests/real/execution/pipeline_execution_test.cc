// Pipelines on real numbers: one training step on thread ranks gives the loss, all gradients and the
// updated parameters of the serial step, whatever the order of the actions and whatever the strategy
// inside of a stage.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/unet_network.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_megatron.h"
#include "workloads/strategies/strategy_summa.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {
namespace {

// Double has 16 digits; sums in another order and a few hundred operations cost six of them at
// most.
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
                         const Strategy& strategy, const std::vector<uint32_t>& units_of_stage,
                         const std::vector<Action>& actions) {
  const Schedule schedule = PlanStages(network, training, strategy, units_of_stage, actions);
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const StepNumbers& serial = SerialNumbers(name, network, training, strategy.chunks);
  const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

// Every order, on so many stages of a decoder.
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
  // All of them behind all input gradients: as far as they can be.
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

}  // namespace
}  // namespace rehearse
