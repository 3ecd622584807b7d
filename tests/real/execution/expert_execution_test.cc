// Experts on real numbers: one training step on thread ranks gives the loss, all gradients and the
// updated parameters of the serial step, wherever the experts are and whichever are chosen, and
// drops the same choices.
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/expert_routing.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace expert_execution_test {

// Double has 16 digits; sums in another order and a few hundred operations cost at most six of
// them.
constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 5;

// Eight experts, of which a token passes two, and a shared one.
GptModel Experts() {
  GptModel model;
  model.name = "experts";
  model.layers = 2;
  model.hidden = 16;
  model.heads = 4;
  model.groups = 4;
  model.vocabulary = 32;
  model.llama = true;
  model.feed_forward = 32;
  model.tied = false;
  model.experts = ExpertModel{.count = 8, .per_token = 2, .hidden = 12, .shared = 8};
  return model;
}

Training TrainingOf(uint32_t micro_batches = 2, uint64_t sequence = 16) {
  Training training;
  training.micro_batches = micro_batches;
  training.batch = 4 * micro_batches;
  training.sequence = sequence;
  training.recomputation = Recomputation::kNone;
  return training;
}

void ExpectSerialNumbers(const GptModel& model, const Training& training,
                         const Schedule& schedule) {
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const Schedule serial = PlanSerialStep(MakeDecoder(model, training), training, 1);
  const CheckReport report = ExecuteAndCompare(ComputeSerially(serial, kSeed), schedule, kSeed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

void ExpectSerialNumbers(const GptModel& model, const Training& training,
                         const CombinedOptions& options) {
  const Network network = MakeDecoder(model, training);
  const Strategy strategy = MakeCombined(options, network);
  SCOPED_TRACE(strategy.name);
  ExpectSerialNumbers(model, training, PlanStep(network, training, strategy));
}

// In two stages, one after the other and with gradients of weights apart.
void ExpectSerialNumbersInStages(const GptModel& model, const Training& training,
                                 const CombinedOptions& options) {
  const Network network = MakeDecoder(model, training);
  const Strategy strategy = MakeCombined(options, network);
  for (const auto& order : {OneForwardOneBackward, ZeroBubbleH1}) {
    ExpectSerialNumbers(model, training,
                        PlanStages(network, training, strategy, EvenStages(network, 2),
                                   order(2, training.micro_batches)));
  }
}

CombinedOptions Spread(uint32_t expert, uint32_t data) {
  CombinedOptions options;
  options.expert = expert;
  options.data = data;
  return options;
}

TEST(ExpertExecution, EveryRankHasAllExperts) {
  ExpectSerialNumbers(Experts(), TrainingOf(), Spread(1, 2));
}

TEST(ExpertExecution, ExpertsAreSpreadOverDataRanks) {
  ExpectSerialNumbers(Experts(), TrainingOf(), Spread(2, 2));
  ExpectSerialNumbers(Experts(), TrainingOf(), Spread(4, 4));
}

TEST(ExpertExecution, ReplicasOfExpertsSumTheirGradients) {
  ExpectSerialNumbers(Experts(), TrainingOf(), Spread(2, 4));
}

// Two of four tensor ranks, then one of two data ranks: the experts' mesh cuts both axes.
TEST(ExpertExecution, ExpertRanksAreFoldedIntoTensorAndDataRanks) {
  CombinedOptions options = Spread(2, 2);
  options.tensor = 4;
  options.sequence_parallel = true;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
  options.tensor = 2;
  options.expert = 4;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
}

TEST(ExpertExecution, RanksShareEachExpert) {
  CombinedOptions options = Spread(2, 2);
  options.tensor = 2;
  options.sequence_parallel = true;
  options.expert_tensor = 2;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
  options.expert = 1;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
}

TEST(ExpertExecution, SharedExpertBesideWhatTravels) {
  CombinedOptions options = Spread(2, 2);
  options.tensor = 2;
  options.sequence_parallel = true;
  options.overlap_shared_expert = true;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
}

TEST(ExpertExecution, TokensTravelInEightBits) {
  // Only what is sent is smaller: casts are executed as copies.
  for (const bool overlaps : {false, true}) {
    CombinedOptions options = Spread(2, 2);
    options.tensor = 2;
    options.sequence_parallel = true;
    options.narrow_dispatch = true;
    options.overlap_shared_expert = overlaps;
    ExpectSerialNumbers(Experts(), TrainingOf(), options);
    options.expert_tensor = 2;
    ExpectSerialNumbers(Experts(), TrainingOf(), options);
  }
}

// Each piece is there before its products begin and leaves when they are done.
TEST(ExpertExecution, TokensTravelInPieces) {
  for (const uint32_t pieces : {2u, 4u}) {
    for (const bool tiles : {false, true}) {
      CombinedOptions options = Spread(2, 2);
      options.expert_pieces = pieces;
      options.expert_tiles = tiles;
      ExpectSerialNumbers(Experts(), TrainingOf(1, 64), options);
      options.narrow_dispatch = true;
      options.overlap_shared_expert = true;
      options.tensor = 2;
      options.sequence_parallel = true;
      ExpectSerialNumbers(Experts(), TrainingOf(2, 64), options);
    }
  }
  // Unequal, dropped, computed again, with weights' gradients apart.
  CombinedOptions options = Spread(4, 4);
  options.expert_pieces = 2;
  GptModel model = Experts();
  model.experts->imbalance = 2;
  model.experts->capacity = 1.25;
  Training training = TrainingOf(2, 256);
  training.recomputation = Recomputation::kFull;
  ExpectSerialNumbers(model, training, options);
  training.recomputes_last_product = false;
  ExpectSerialNumbers(model, training, options);
  training.recomputation = Recomputation::kNone;
  model.layers = 4;
  options = Spread(2, 2);
  options.expert_pieces = 2;
  training = TrainingOf(4, 256);
  ExpectSerialNumbersInStages(model, training, options);
}

TEST(ExpertExecution, EveryStageOfZero) {
  for (const uint32_t stage : {1u, 2u, 3u}) {
    CombinedOptions options = Spread(2, 1);
    options.zero.stage = stage;
    options.zero.shard = 4;
    options.zero.by_layer = stage == 3;
    ExpectSerialNumbers(Experts(), TrainingOf(), options);
  }
}

TEST(ExpertExecution, OptimizerInSharesWithBucketsAndGathersBesideTheForwardPass) {
  CombinedOptions options = Spread(4, 1);
  options.tensor = 2;
  options.sequence_parallel = true;
  options.zero.stage = 1;
  options.zero.shard = 4;
  options.bucket_elements = 1;
  options.overlap_parameter_gathers = true;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
}

TEST(ExpertExecution, SequencesInShares) {
  CombinedOptions options = Spread(4, 2);
  options.context = 2;
  ExpectSerialNumbers(Experts(), TrainingOf(), options);
}

TEST(ExpertExecution, LayersAreComputedAgain) {
  Training training = TrainingOf();
  training.recomputation = Recomputation::kFull;
  ExpectSerialNumbers(Experts(), training, Spread(2, 2));
}

TEST(ExpertExecution, SomeLayersHaveNoExperts) {
  GptModel model = Experts();
  model.layers = 3;
  model.experts->every = 2;
  ExpectSerialNumbers(model, TrainingOf(), Spread(2, 2));
  model.experts->every = 1;
  model.experts->first_dense = 1;
  ExpectSerialNumbers(model, TrainingOf(), Spread(2, 2));
}

TEST(ExpertExecution, SigmoidsAndOneExpertAToken) {
  GptModel model = Experts();
  model.experts->sigmoid = true;
  ExpectSerialNumbers(model, TrainingOf(), Spread(2, 2));
  model.experts->per_token = 1;
  ExpectSerialNumbers(model, TrainingOf(), Spread(4, 4));
}

TEST(ExpertExecution, ChoicesLieInGroups) {
  GptModel model = Experts();
  model.experts->groups = 4;
  model.experts->limited_groups = 2;
  ExpectSerialNumbers(model, TrainingOf(), Spread(4, 4));
}

// Runs of 64 tokens, so an equal share is 16 choices; a rank has 64.
TEST(ExpertExecution, BusyExpertsHaveMoreRows) {
  GptModel model = Experts();
  model.experts->imbalance = 2;
  ExpectSerialNumbers(model, TrainingOf(1, 64), Spread(4, 4));
  CombinedOptions options = Spread(2, 1);
  options.tensor = 2;
  options.sequence_parallel = true;
  options.expert_tensor = 2;
  options.data = 2;
  ExpectSerialNumbers(model, TrainingOf(1, 64), options);
}

TEST(ExpertExecution, BusyExpertsDropWhatTheyHaveNoRoomFor) {
  GptModel model = Experts();
  model.experts->imbalance = 2;
  model.experts->capacity = 1.25;
  const ExpertRouting routing = MakeRouting(model.experts->RoutingAttributes());
  ASSERT_LT(routing.Kept(), routing.period * routing.per_token);
  ExpectSerialNumbers(model, TrainingOf(1, 64), Spread(4, 4));
  ExpectSerialNumbers(model, TrainingOf(1, 64), Spread(2, 4));
}

// Other experts are busy in each micro-batch, and all ranks agree on which.
TEST(ExpertExecution, BusyExpertsOfEachMicroBatch) {
  GptModel model = Experts();
  model.experts->imbalance = 2;
  model.experts->drawn_by_micro_batch = true;
  for (const double capacity : {0.0, 1.25}) {
    model.experts->capacity = capacity;
    ExpectSerialNumbers(model, TrainingOf(4, 64), Spread(4, 4));
    ExpectSerialNumbers(model, TrainingOf(4, 64), Spread(2, 4));
  }
  model.layers = 4;
  const Training training = TrainingOf(4, 64);
  ExpectSerialNumbersInStages(model, training, Spread(2, 2));
}

TEST(ExpertExecution, Pipelines) {
  for (const double imbalance : {1.0, 1.5}) {
    GptModel model = Experts();
    model.layers = 4;
    model.experts->imbalance = imbalance;
    const Training training = TrainingOf(4, 64);
    ExpectSerialNumbersInStages(model, training, Spread(2, 2));
  }
}

size_t SwitchesOfMicroBatch(const Role& role) {
  size_t switches = 0;
  int32_t last = 0;
  for (const Op& op : role.ops) {
    if (!std::holds_alternative<Compute>(op.work)) continue;
    switches += op.tag.micro_batch != last ? 1 : 0;
    last = op.tag.micro_batch;
  }
  return switches;
}

// A forward pass and the backward pass of another micro-batch, in turns: nothing else is computed.
TEST(ExpertExecution, PairsOfPasses) {
  for (const Recomputation recomputation :
       {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
    GptModel model = Experts();
    model.layers = 4;
    Training training = TrainingOf(8, 64);
    training.recomputation = recomputation;
    training.recomputed_ops.activations = recomputation == Recomputation::kSelective;
    const Network network = MakeDecoder(model, training);
    CombinedOptions options = Spread(2, 1);
    options.zero.stage = recomputation == Recomputation::kFull ? 3 : 1;
    options.zero.shard = 2;
    const Strategy strategy = MakeCombined(options, network);
    StagePipeline pipelines[] = {
        {OneStageARank(2), EvenStages(network, 2), OneForwardOneBackward(2, 8)},
        {VShaped(2), EvenStages(network, 4), DualPipeV(2, 8)},
        {BothWays(2), EvenStages(network, 2), DualPipe(2, 8)}};
    for (StagePipeline& pipeline : pipelines) {
      const Schedule apart = PlanPipeline(network, training, strategy, pipeline);
      pipeline.pairs_passes = true;
      const Schedule paired = PlanPipeline(network, training, strategy, pipeline);
      EXPECT_GT(SwitchesOfMicroBatch(paired.roles[0]), SwitchesOfMicroBatch(apart.roles[0]));
      ExpectSerialNumbers(model, training, paired);
    }
  }
}

// Parts of a layer's passes in the order of a table, with layers without experts among them.
TEST(ExpertExecution, PairsInTheOrderOfATable) {
  for (const PairOrderFacts& facts : PairOrders()) {
    for (const bool recomputes : {false, true}) {
      GptModel model = Experts();
      model.layers = 4;
      model.experts->first_dense = 1;
      Training training = TrainingOf(8, 64);
      if (recomputes) training.recomputation = Recomputation::kSelective;
      training.recomputed_ops.activations = recomputes;
      training.recomputed_ops.norms = recomputes;
      const Network network = MakeDecoder(model, training);
      CombinedOptions options = Spread(2, 1);
      options.zero.stage = 1;
      options.zero.shard = 2;
      options.overlap_shared_expert = recomputes;
      const Strategy strategy = MakeCombined(options, network);
      StagePipeline pipelines[] = {
          {OneStageARank(2), EvenStages(network, 2), OneForwardOneBackwardInPairs(2, 8)},
          {Looped(2, 2), EvenStages(network, 4), InterleavedInPairs(2, 2, 8)},
          {VShaped(2), EvenStages(network, 4), ZeroBubbleV(2, 8)},
          {VShaped(2), EvenStages(network, 4), DualPipeV(2, 8)},
          {BothWays(2), EvenStages(network, 2), DualPipe(2, 8)}};
      for (StagePipeline& pipeline : pipelines) {
        pipeline.pairs_passes = true;
        pipeline.pair_order = facts.order;
        ExpectSerialNumbers(model, training, PlanPipeline(network, training, strategy, pipeline));
      }
    }
  }
}

// Products in 8 bits take what arrives as it was sent, and what waits for the way back is narrow or
// cast again: the numbers are those of the training's precision.
TEST(ExpertExecution, NarrowOnTheWayAndWhileItIsKept) {
  const GptModel model = Experts();
  Training training = TrainingOf();
  training.products = ProductRecipe::kFp8Blockwise;
  training.recomputation = Recomputation::kSelective;
  training.recomputed_ops.activations = true;
  training.recomputed_ops.norms = true;
  training.keeps_narrow_activations = true;
  training.keeps_narrow_attention = true;
  for (const bool keeps_casts : {true, false}) {
    training.keeps_casts = keeps_casts;
    const Network network = MakeDecoder(model, training);
    CombinedOptions options = Spread(4, 4);
    options.narrow_dispatch = true;
    ExpectSerialNumbers(model, training,
                        PlanStep(network, training, MakeCombined(options, network)));
  }
}

TEST(ExpertExecution, KindsThatSplitTheBatchOnly) {
  const GptModel model = Experts();
  const Training training = TrainingOf();
  const Network network = MakeDecoder(model, training);
  ExpectSerialNumbers(model, training,
                      PlanStep(network, training, MakeDataParallel(2, true, network)));
  ZeroOptions zero;
  zero.shard = 4;
  zero.by_layer = true;
  ExpectSerialNumbers(model, training, PlanStep(network, training, MakeZero(zero, network)));
}

}  // namespace expert_execution_test
}  // namespace rehearse
