// State-space layers between attention, MLPs and experts: under every strategy the numbers are the
// serial step's, which serial_step_test.cc compares with a textbook's recurrence.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
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
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace state_space_execution_test {

using ::testing::HasSubstr;

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 5;

// 8 heads of 2 columns in 4 groups; chunks do not divide sequences.
GptModel Hybrid(const std::string& pattern) {
  GptModel model;
  model.name = "hybrid";
  model.layers = static_cast<uint32_t>(pattern.size());
  model.layer_pattern = pattern;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  model.llama = true;
  model.squared_relu = true;
  model.feed_forward = 32;
  model.tied = false;
  model.mamba = StateSpaceModel{
      .state = 3, .head = 2, .groups = 4, .heads = 8, .expand = 2, .conv = 4, .chunk = 3};
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
      MakeMegatron(
          {.tensor = 2, .data = 2, .sequence_parallel = true, .distributed_optimizer = true},
          network),
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

TEST(StateSpaceExecutionTest, EveryStrategyGivesTheSerialNumbers) {
  for (const Recomputation recomputation :
       {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
    if (kIsSanitized && recomputation != Recomputation::kFull) continue;
    const Training training = TrainingOf(recomputation);
    const Network network = MakeDecoder(Hybrid("M-*M"), training);
    for (const Strategy& strategy : Strategies(network)) {
      SCOPED_TRACE(
          fmt::format("{}, recomputation {}", strategy.name, static_cast<int>(recomputation)));
      ExpectSerialNumbers(network, training, strategy);
    }
  }
}

TEST(StateSpaceExecutionTest, StagesGiveTheSerialNumbers) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    Training training = TrainingOf(recomputation);
    training.micro_batches = 4;
    const Network network = MakeDecoder(Hybrid("M-M*"), training);
    const StepNumbers serial = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
    const Strategy strategy =
        MakeMegatron({.tensor = 2, .data = 1, .sequence_parallel = true}, network);
    const Schedule schedule = PlanStages(network, training, strategy, EvenStages(network, 2),
                                         OneForwardOneBackward(2, training.micro_batches));
    CheckSchedule(schedule);
    const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
    EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
  }
}

TEST(StateSpaceExecutionTest, StatesEndWithDocuments) {
  const Training training = TrainingOf(Recomputation::kNone, 4);
  const Network network = MakeDecoder(Hybrid("M*"), training);
  ExpectSerialNumbers(network, training, MakeMegatron({.tensor = 2, .data = 2}, network));
  const Training whole = TrainingOf(Recomputation::kNone);
  const Network other = MakeDecoder(Hybrid("M*"), whole);
  EXPECT_NE(ComputeSerially(PlanSerialStep(network, training, 1), kSeed).loss,
            ComputeSerially(PlanSerialStep(other, whole, 1), kSeed).loss);
}

TEST(StateSpaceExecutionTest, ExpertsWithASquaredReluGiveTheSerialNumbers) {
  const Training training = TrainingOf(Recomputation::kNone);
  GptModel model = Hybrid("ME*E");
  model.experts = ExpertModel{.count = 4, .per_token = 2, .hidden = 8, .shared = 8};
  const Network network = MakeDecoder(model, training);
  EXPECT_DOUBLE_EQ(network.Parameters(), model.Parameters());
  CombinedOptions options;
  options.tensor = 2;
  options.data = 2;
  options.expert = 2;
  options.sequence_parallel = true;
  ExpectSerialNumbers(network, training, MakeCombined(options, network));
}

// Experts of shorter vectors, and layers that predict further ahead with the first one's weights.
TEST(StateSpaceExecutionTest, LatentExpertsAndSharedLayersGiveTheSerialNumbers) {
  const Training training = TrainingOf(Recomputation::kNone);
  GptModel model = Hybrid("ME*E");
  model.experts = ExpertModel{.count = 4, .per_token = 2, .hidden = 8, .shared = 8, .latent = 6};
  model.predict_ahead = 2;
  model.ahead_pattern = "*E";
  for (const bool is_shared : {true, false}) {
    model.shares_ahead = is_shared;
    const Network network = MakeDecoder(model, training);
    EXPECT_DOUBLE_EQ(network.Parameters(), model.Parameters());
    for (const uint32_t stage : {0u, 1u}) {
      CombinedOptions options;
      options.tensor = 2;
      options.zero.shard = stage == 0 ? 1 : 2;
      options.zero.stage = stage;
      options.data = stage == 0 ? 2 : 1;
      options.expert = 2;
      options.sequence_parallel = true;
      ExpectSerialNumbers(network, training, MakeCombined(options, network));
    }
  }
}

std::string RefusalOf(const CombinedOptions& options) {
  const Training training = TrainingOf(Recomputation::kNone);
  const Network network = MakeDecoder(Hybrid("M*"), training);
  try {
    PlanStep(network, training, MakeCombined(options, network));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(StateSpaceExecutionTest, SequencesAreNotSharedAndGroupsAreNotCut) {
  CombinedOptions options;
  options.context = 2;
  EXPECT_THAT(RefusalOf(options), HasSubstr("state-space layers, whose sequences are not shared"));
  options.context = 1;
  options.tensor = 8;
  EXPECT_THAT(RefusalOf(options),
              HasSubstr("4 groups of state-space heads of hybrid cannot be split into 8 parts"));
}

}  // namespace state_space_execution_test
}  // namespace rehearse
