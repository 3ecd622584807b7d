// What ranks keep of parameters that they share, in the books of each software: bytes a parameter,
// weights that stay gathered, gradients that stay whole, and what torchtitan's "op" keeps.
#include <gtest/gtest.h>

#include "sim/schedule/memory.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/pipeline.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"

namespace rehearse {
namespace shared_memory_test {

GptModel Model() {
  GptModel model;
  model.name = "decoder";
  model.layers = 4;
  model.hidden = 64;
  model.heads = 4;
  model.vocabulary = 128;
  model.llama = true;
  model.groups = 4;
  model.feed_forward = 128;
  model.tied = false;
  return model;
}

Training TrainingOf(Recomputation recomputation, uint32_t micro_batches = 1) {
  Training training;
  training.micro_batches = micro_batches;
  training.batch = 8 * micro_batches;
  training.sequence = 8;
  training.recomputation = recomputation;
  return training;
}

uint32_t CountOps(const Role& role, const std::string& name) {
  uint32_t count = 0;
  for (uint32_t position = 0; position < role.OpCount(); ++position)
    count += role.At(position).name == name ? 1 : 0;
  return count;
}

ZeroOptions Zero3(ShardCopies copies) {
  ZeroOptions options{.shard = 8};
  options.copies = copies;
  options.by_layer = true;
  return options;
}

// Weights in 16 bits beside masters, gradients and two moments in 32 make 18; where the weights
// are the masters, 16. Norms' gains are not shared, and few.
TEST(SharedMemoryTest, PyTorchKeepsSixteenBytesAParameter) {
  const Training training = TrainingOf(Recomputation::kFull);
  const Network network = MakeDecoder(Model(), training);
  double gains = 0;
  for (const NetworkVector& vector : network.vectors) gains += static_cast<double>(vector.size);
  const double shared = (network.Parameters() - gains) / 8;
  const auto kept = [&](ShardCopies copies) {
    const MemoryUse use =
        MemoryOf(PlanStep(network, training, MakeZero(Zero3(copies), network)).roles[0]);
    return (use.parameters + use.gradients + use.optimizer).value();
  };
  EXPECT_EQ(kept(ShardCopies::kNone), 18 * shared + 18 * gains);
  EXPECT_EQ(kept(ShardCopies::kFlat), 16 * shared + 14 * gains);
  EXPECT_EQ(kept(ShardCopies::kPerParameter), 16 * shared + 14 * gains);
}

// PyTorch over a model in bf16: weights, gradients and two moments of 2 bytes, whatever is copied.
// Gradients of norms' gains have 4.
TEST(SharedMemoryTest, ModelsOf16BitsKeepEightBytesAParameter) {
  Training training = TrainingOf(Recomputation::kFull);
  training.masters = MasterWeights::kNone;
  training.moments = DType::kBf16;
  training.gradients = DType::kBf16;
  const Network network = MakeDecoder(Model(), training);
  double gains = 0;
  for (const NetworkVector& vector : network.vectors) gains += static_cast<double>(vector.size);
  const double shared = (network.Parameters() - gains) / 8;
  for (const ShardCopies copies : {ShardCopies::kNone, ShardCopies::kPerParameter}) {
    const MemoryUse use =
        MemoryOf(PlanStep(network, training, MakeZero(Zero3(copies), network)).roles[0]);
    EXPECT_EQ((use.parameters + use.gradients + use.optimizer).value(), 8 * shared + 10 * gains);
  }
}

TEST(SharedMemoryTest, WeightsThatStayGatheredAreGatheredOnceDespiteRecomputation) {
  const Training training = TrainingOf(Recomputation::kFull);
  const Network network = MakeDecoder(Model(), training);
  const auto plan = [&](bool reshard) {
    ZeroOptions options = Zero3(ShardCopies::kNone);
    options.reshard_after_forward = reshard;
    return PlanStep(network, training, MakeZero(options, network)).roles[0];
  };
  EXPECT_EQ(CountOps(plan(true), "all-gather layer"), 2 * 4u);
  EXPECT_EQ(CountOps(plan(false), "all-gather layer"), 4u);
  EXPECT_GT(MemoryOf(plan(false)).buffers, MemoryOf(plan(true)).buffers);
}

// One gather and one reduce-scatter of each layer for all micro-batches, however many; and at the
// end of the stage's work all of its gradients are there whole, in 32 bits.
TEST(SharedMemoryTest, StagesHoldWeightsAndGradientsWholeUntilTheLastMicroBatch) {
  for (const uint32_t micro_batches : {4u, 24u}) {
    const Training training = TrainingOf(Recomputation::kFull, micro_batches);
    const Network network = MakeDecoder(Model(), training);
    ZeroOptions options = Zero3(ShardCopies::kPerParameter);
    options.reshard_after_forward = false;
    options.until_last_micro_batch = true;
    options.reduces_in_fp32 = true;
    const auto plan = [&] {
      return PlanStages(network, training, MakeZero(options, network), EvenStages(network, 2),
                        OneForwardOneBackward(2, micro_batches))
          .roles[1];
    };
    const Role whole = plan();
    EXPECT_EQ(CountOps(whole, "all-gather layer"), 2u);
    EXPECT_EQ(CountOps(whole, "reduce-scatter layer"), 2u);
    options.until_last_micro_batch = false;
    const Role shared = plan();
    EXPECT_EQ(CountOps(shared, "reduce-scatter layer"), 2 * micro_batches);
    const double layers = 2 * (4 * 64 * 64 + 3 * 64 * 128);
    const Bytes more = MemoryOf(whole).buffers - MemoryOf(shared).buffers;
    EXPECT_GE(more, Bytes(2 * layers)) << micro_batches;
  }
}

// Embedding and output layer, 128×64 each, are whole in 16 bits until the way back is done, where
// PyTorch shards; else only the output is, where the loss has its arrays.
TEST(SharedMemoryTest, TheRootOfPyTorchStaysGathered) {
  const Training training = TrainingOf(Recomputation::kFull);
  const Network network = MakeDecoder(Model(), training);
  const auto role = [&](ShardCopies copies) {
    return PlanStep(network, training, MakeZero(Zero3(copies), network)).roles[0];
  };
  const Role flat = role(ShardCopies::kFlat);
  EXPECT_EQ(CountOps(flat, "reshard embedding"), 1u);
  EXPECT_EQ(CountOps(flat, "reshard output"), 1u);
  EXPECT_EQ(CountOps(role(ShardCopies::kNone), "reshard embedding"), 0u);
}

// Of each of 4 micro-batches of 64 tokens the first of two stages keeps what it sends and what
// comes back, the last one what it receives and 128 logits a token, in 16 bits; what is sent and
// received lies there and counts no more.
TEST(SharedMemoryTest, StagesKeepTheirMessages) {
  const uint32_t micro_batches = 4;
  const Training training = TrainingOf(Recomputation::kFull, micro_batches);
  const Network network = MakeDecoder(Model(), training);
  const Strategy strategy = MakeDataParallel(1, false, network);
  StagePipeline pipeline{OneStageARank(2), EvenStages(network, 2),
                         OneForwardOneBackward(2, micro_batches)};
  const auto uses = [&](bool keeps) {
    pipeline.keeps_messages = keeps;
    const std::vector<Role> roles = PlanPipeline(network, training, strategy, pipeline).roles;
    return std::vector<MemoryUse>{MemoryOf(roles[0]), MemoryOf(roles[1])};
  };
  const double message = micro_batches * 64 * 64 * 2;
  const double logits = micro_batches * 64 * 128 * 2;
  const std::vector<MemoryUse> before = uses(false);
  const std::vector<MemoryUse> after = uses(true);
  EXPECT_EQ(after[0].buffers - before[0].buffers, Bytes(2 * message));
  EXPECT_EQ(after[1].buffers - before[1].buffers, Bytes(message + logits));
  EXPECT_LT(after[0].activations, before[0].activations);
  EXPECT_LT(after[1].activations, before[1].activations);
}

// The way back gathers over the two innermost of eight ranks, from shares that take 2/2 bytes a
// parameter more.
TEST(SharedMemoryTest, TheBackwardPassGathersFromNearShares) {
  const Training training = TrainingOf(Recomputation::kFull);
  const Network network = MakeDecoder(Model(), training);
  ZeroOptions options = Zero3(ShardCopies::kNone);
  const auto plan = [&] { return PlanStep(network, training, MakeZero(options, network)); };
  const Schedule far = plan();
  options.backward_within = 2;
  const Schedule near = plan();
  uint32_t sizes[2] = {};
  for (const Op& op : near.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || collective->kind != CollectiveKind::kAllGather) continue;
    if (op.tag.layer < 0) continue;
    const bool goes_back = op.tag.phase != Phase::kForward;
    const uint32_t size = near.communicators[collective->communicator.index()].size();
    EXPECT_EQ(size, goes_back ? 2u : 8u);
    ++sizes[goes_back ? 1 : 0];
  }
  EXPECT_EQ(sizes[0], 4u);
  EXPECT_EQ(sizes[1], 4u);
  const double of_layers = 4 * (4 * 64 * 64 + 3 * 64 * 128);
  const Bytes more = MemoryOf(near.roles[0]).buffers - MemoryOf(far.roles[0]).buffers;
  EXPECT_NEAR(more.value(), of_layers, 0.5 * of_layers);
}

// Of a layer of Llama, torchtitan's "op" keeps Q, V, the core's result, the gate, and the layer's
// input; here Q, K and V are one product, and so are gate and up, of which parts are kept.
TEST(SharedMemoryTest, EverySecondProductIsDropped) {
  Training training = TrainingOf(Recomputation::kSelective);
  training.recomputed_ops.activations = true;
  training.recomputed_ops.norms = true;
  const auto activations = [&](uint32_t layers) {
    GptModel model = Model();
    model.layers = layers;
    const Network network = MakeDecoder(model, training);
    return MemoryOf(PlanStep(network, training, MakeDataParallel(1, false, network)).roles[0])
        .activations.value();
  };
  const auto of_a_layer = [&] { return activations(8) - activations(7); };
  const double before = of_a_layer();
  training.recomputed_ops.second_products = true;
  // K, attention's output with the residual sum behind it, and the half of "up" that is not the
  // gate, in 16 bits.
  const double tokens = 64;
  EXPECT_EQ(before - of_a_layer(), tokens * 2 * (64 + 64 + 128));
}

}  // namespace shared_memory_test
}  // namespace rehearse
