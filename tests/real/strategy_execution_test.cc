// Every strategy on real numbers: one training step on thread ranks gives the loss, all gradients and the
// updated parameters of the serial step, whatever the mesh. Both begin with the same numbers.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "real/execute.h"
#include "sim/buffer_check.h"
#include "sim/schedule_check.h"
#include "tests/real/executed.h"
#include "workloads/decoder_network.h"
#include "workloads/planner.h"
#include "workloads/strategy_4d.h"
#include "workloads/strategy_megatron.h"
#include "workloads/strategy_zero.h"

namespace rehearse {
namespace {

// Double has 16 digits; sums in another order and a few hundred operations cost six of them at most.
constexpr double kTolerance = 1e-10;

struct Step {
  GptModel model;
  Training training;
};

Step SmallGpt(bool llama, Recomputation recomputation, uint32_t micro_batches) {
  Step step;
  step.model.name = "small";
  step.model.layers = 2;
  step.model.hidden = 24;
  step.model.heads = 12;
  step.model.vocabulary = 48;
  if (llama) {
    step.model.llama = true;
    step.model.groups = 4;
    step.model.feed_forward = 48;
    step.model.tied = false;
  }
  step.training.batch = 12 * micro_batches;
  step.training.sequence = 4;
  step.training.micro_batches = micro_batches;
  step.training.recomputation = recomputation;
  return step;
}

void ExpectSerialNumbers(const Step& step, const Strategy& strategy, uint64_t seed) {
  const Network network = MakeDecoder(step.model, step.training);
  const Schedule schedule = PlanStep(network, step.training, strategy);
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const StepNumbers serial =
      ComputeSerially(PlanStep(network, step.training, MakeDataParallel(1, false, network)), seed);
  const CheckReport report = ExecuteAndCompare(serial, schedule, seed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

Network Decoder(const Step& step) { return MakeDecoder(step.model, step.training); }

TEST(StrategyExecutionTest, DataParallelism) {
  const Step step = SmallGpt(false, Recomputation::kNone, 1);
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    ExpectSerialNumbers(step, MakeDataParallel(ranks, ranks == 4, Decoder(step)), 1);
  }
}

TEST(StrategyExecutionTest, ZeroStages) {
  for (const uint32_t stage : {0u, 1u, 2u, 3u}) {
    for (const auto& [shard, replicas] :
         {std::pair(2u, 1u), std::pair(4u, 1u), std::pair(3u, 2u)}) {
      const Step step = SmallGpt(stage % 2 == 0, Recomputation::kNone, 1 + stage % 2);
      ZeroOptions options;
      options.shard = shard;
      options.replicas = replicas;
      options.stage = stage;
      SCOPED_TRACE("stage " + std::to_string(stage) + " on " + std::to_string(shard) + " x " +
                   std::to_string(replicas));
      ExpectSerialNumbers(step, MakeZero(options, Decoder(step)), 2);
    }
  }
}

TEST(StrategyExecutionTest, SharesThatDoNotDivideArePadded) {
  // 24·24·3 = 1728 elements over 5 ranks: four shares of 346 and one of 344.
  Step step = SmallGpt(false, Recomputation::kFull, 1);
  step.training.batch = 5;
  ZeroOptions options;
  options.shard = 5;
  ExpectSerialNumbers(step, MakeZero(options, Decoder(step)), 3);
}

TEST(StrategyExecutionTest, Megatron) {
  for (const bool sequence_parallel : {false, true}) {
    for (const auto& [tensor, data] : {std::pair(2u, 1u), std::pair(4u, 1u), std::pair(2u, 2u)}) {
      const Step step = SmallGpt(sequence_parallel, Recomputation::kNone, 1);
      MegatronOptions options;
      options.tensor = tensor;
      options.data = data;
      options.sequence_parallel = sequence_parallel;
      options.distributed_optimizer = data > 1;
      SCOPED_TRACE("tensor " + std::to_string(tensor) + ", data " + std::to_string(data));
      ExpectSerialNumbers(step, MakeMegatron(options, Decoder(step)), 4);
    }
  }
}

TEST(StrategyExecutionTest, FourDWithAnyMeshAndAnySwitches) {
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<uint32_t> from) {
    return *(from.begin() + random() % from.size());
  };
  int cases = 0;
  int executed = 0;
  while (cases < 120) {
    FourDOptions options;
    options.column = pick({1, 2, 3, 4});
    options.row = pick({1, 2, 3, 4});
    options.depth = pick({1, 2, 3});
    options.data = pick({1, 2});
    const uint32_t ranks = options.column * options.row * options.depth * options.data;
    if (ranks > 16) continue;
    options.transpose_alternate_layers = random() % 4 != 0;
    options.overlap_all_reduce = random() % 2 == 0;
    options.overlap_reduce_scatter = random() % 2 == 0;
    options.overlap_all_gather = random() % 2 == 0;
    const auto recomputation = static_cast<Recomputation>(random() % 3);
    if (recomputation == Recomputation::kFull) options.cached_layers = pick({0, 1, 2});
    const Step step = SmallGpt(options.transpose_alternate_layers && random() % 2 == 0,
                               recomputation, 1 + random() % 2);
    const Network network = Decoder(step);
    SCOPED_TRACE("case " + std::to_string(cases) + ": column " + std::to_string(options.column) +
                 ", row " + std::to_string(options.row) + ", depth " +
                 std::to_string(options.depth) + ", data " + std::to_string(options.data));
    ++cases;
    const Strategy strategy = MakeFourD(options, network);
    try {
      PlanStep(network, step.training, strategy);
    } catch (const Error&) {
      continue;  // this mesh does not split these heads
    }
    ExpectSerialNumbers(step, strategy, 100 + static_cast<uint64_t>(cases));
    ++executed;
  }
  EXPECT_GT(executed, 80);
}

}  // namespace
}  // namespace rehearse
