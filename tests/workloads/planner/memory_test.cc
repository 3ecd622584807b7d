// Memory of whole plans against published figures.
#include "sim/schedule/memory.h"

#include <gtest/gtest.h>

#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace memory_test {

constexpr double kGiB = 1073741824.0;

const GptModel& Known(const std::string& name) {
  for (const GptModel& model : KnownModels()) {
    if (model.name == name) return model;
  }
  throw Error("no model " + name);
}

// Activations of one of 8 tensor-parallel ranks, in GiB.
double Activations(const std::string& name, uint64_t batch, bool sequence_parallel,
                   Recomputation recomputation) {
  Training training;
  training.batch = batch;
  training.sequence = 2048;
  training.recomputation = recomputation;
  training.attention = AttentionKernel::kUnfused;
  const Network network = MakeDecoder(Known(name), training);
  MegatronOptions options{.tensor = 8, .data = 1};
  options.sequence_parallel = sequence_parallel;
  const MemoryUse use =
      MemoryOfFullestRank(PlanStep(network, training, MakeMegatron(options, network)));
  return use.activations.value() / kGiB;
}

struct Published {
  const char* model;
  uint64_t batch;    // of a micro-batch
  double in_flight;  // micro-batches of all layers that the first pipeline stage holds
  double none;       // GiB, truth/training/korthikanti2022_memory.csv
  double sequence_and_selective;
};

// A pipeline's first stage holds as many micro-batches of its layers as there are stages: together
// all layers of one, and 1 + (p-1)/(p·v) of it where v chunks of layers are interleaved (p = 8, v =
// 3 for 175B; 35 and 3 for 530B; 64 and 1 for 1T, all of it).
const Published kPublished[] = {
    {"gpt-22b", 4, 1, 59.25, 9.5625},
    {"gpt-175b", 1, 1 + 7.0 / 24, 66.84375, 12.3515625},
    {"gpt-530b", 1, 1 + 34.0 / 105, 114.0234375, 23.076171875},
    {"gpt-1t", 1, 1, 131.25, 26.5625},
};

TEST(MemoryTest, ActivationsAreWithinTenPercentOfKorthikantis) {
  for (const Published& row : kPublished) {
    const double none = Activations(row.model, row.batch, false, Recomputation::kNone);
    EXPECT_NEAR(none * row.in_flight / row.none, 1, 0.1) << row.model;
    const double selective = Activations(row.model, row.batch, true, Recomputation::kSelective);
    EXPECT_NEAR(selective * row.in_flight / row.sequence_and_selective, 1, 0.1) << row.model;
  }
}

// Softmax's result, and with dropout its mask and its result, for each head, row and column.
TEST(MemoryTest, WithoutDropoutUnfusedAttentionKeepsItsSoftmaxAlone) {
  const auto scores = [](bool dropout) {
    Training training;
    training.batch = 4;
    training.sequence = 128;
    training.recomputation = Recomputation::kNone;
    training.attention = AttentionKernel::kUnfused;
    training.dropout = dropout;
    const Network network = MakeDecoder(Known("gpt-125m"), training);
    const Schedule schedule = PlanStep(network, training, MakeDataParallel(1, false, network));
    double bytes = 0;
    for (const Buffer& buffer : schedule.roles[0].buffers)
      if (buffer.name.find("scores") != std::string::npos) bytes += buffer.bytes.value();
    return bytes;
  };
  const double entries = 12.0 * 12 * 4 * 128 * 128;  // layers, heads
  EXPECT_EQ(scores(true), entries * (2 + 1 + 2));
  EXPECT_EQ(scores(false), entries * 2);
}

TEST(MemoryTest, ZerosStagesShareOptimizerGradientsAndParameters) {
  // Rajbhandari et al., Fig. 1: (2 + 4 + 12)·n bytes, of which N ranks share 12, 4 + 12, 2 + 4 +
  // 12; our gradients are kept in fp32, and stage 1 keeps all of them, since its shard is summed in
  // place. Biases and norms (0.1 % here) are not sharded.
  Training training;
  training.batch = 8;
  training.sequence = 128;
  const GptModel& model = Known("gpt-125m");
  const Network network = MakeDecoder(model, training);
  const double n = model.Parameters();
  for (const uint32_t stage : {0u, 1u, 2u, 3u}) {
    const MemoryUse use = MemoryOfFullestRank(PlanStep(
        network, training, MakeZero({.shard = 8, .replicas = 1, .stage = stage}, network)));
    EXPECT_NEAR(use.parameters.value() / (2 * n / (stage >= 3 ? 8 : 1)), 1, 0.01) << stage;
    const double gradients = stage >= 2 ? 1.0 / 8 : 1;
    EXPECT_NEAR(use.gradients.value() / (4 * n * gradients), 1, 0.01) << stage;
    EXPECT_NEAR(use.optimizer.value() / (12 * n / (stage >= 1 ? 8 : 1)), 1, 0.01) << stage;
  }
}

TEST(MemoryTest, GradientsInBf16TakeTwoBytesInsteadOfFour) {
  // Except for biases and norms, 0.1 % here.
  Training training;
  training.batch = 2;
  training.sequence = 128;
  training.gradients = DType::kBf16;
  const GptModel& model = Known("gpt-125m");
  const Network network = MakeDecoder(model, training);
  const MemoryUse use =
      MemoryOfFullestRank(PlanStep(network, training, MakeDataParallel(1, false, network)));
  EXPECT_NEAR(use.gradients.value() / (2 * model.Parameters()), 1, 0.01);
}

TEST(MemoryTest, InFp32ParametersAreTheirOwnMasterWeights) {
  Training training;
  training.batch = 2;
  training.sequence = 128;
  training.precision = DType::kFp32;
  const Network network = MakeDecoder(Known("gpt-125m"), training);
  const MemoryUse use =
      MemoryOfFullestRank(PlanStep(network, training, MakeDataParallel(1, false, network)));
  EXPECT_EQ(use.parameters.value(), use.gradients.value());
  EXPECT_EQ(use.optimizer.value(), 2 * use.parameters.value());
}

}  // namespace memory_test
}  // namespace rehearse
