// What HFU counts: the model's flops and those of what is computed again.
#include <functional>

#include <gtest/gtest.h>

#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_megatron.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {
namespace {

GptModel SmallModel() {
  GptModel model;
  model.name = "small";
  model.layers = 3;
  model.hidden = 96;
  model.heads = 8;
  model.vocabulary = 192;
  return model;
}

Training SmallTraining(Recomputation recomputation, bool fused) {
  Training training;
  training.batch = 16;
  training.sequence = 32;
  training.micro_batches = 2;
  training.recomputation = recomputation;
  training.fused_attention = fused;
  return training;
}

Strategy MakeFourDOf16(const Network& network) {
  return MakeFourD({.column = 2, .row = 2, .depth = 2, .data = 2}, network);
}
Strategy MakeAtpInChunks(const Network& network) {
  AtpOptions options;
  options.d1 = 2;
  options.d2 = 2;
  options.chunks = 2;
  return MakeAtp(options, network);
}
Strategy MakeMegatronOf8(const Network& network) {
  MegatronOptions options;
  options.tensor = 4;
  options.data = 2;
  return MakeMegatron(options, network);
}
Strategy MakeFsdpOf8(const Network& network) {
  ZeroOptions options;
  options.stage = 3;
  options.shard = 8;
  options.replicas = 1;
  return MakeZero(options, network);
}

using Maker = Strategy (*)(const Network&);
constexpr Maker kMakers[] = {MakeFourDOf16, MakeAtpInChunks, MakeMegatronOf8, MakeFsdpOf8};

Schedule PlanWith(Maker make, const Training& training) {
  const Network network = MakeDecoder(SmallModel(), training);
  return PlanStep(network, training, make(network));
}

TEST(HardwareFlopsTest, FullRecomputationCountsAsNarayananDoes) {
  // 96·B·s·l·h²·(1 + s/6h + V/16lh): everything a fourth time but the output layer. The attention
  // core counts without its mask, though a fused one leaves half of the work out, and once, though
  // ranks of a row of 4D all do it.
  const double h = 96, l = 3, s = 32, v = 192;
  const double expected = 96 * 16 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  for (const bool fused : {false, true}) {
    for (const Maker make : kMakers) {
      const Schedule schedule = PlanWith(make, SmallTraining(Recomputation::kFull, fused));
      EXPECT_NEAR(schedule.hardware_flops.value() / expected, 1, 1e-12);
    }
  }
}

TEST(HardwareFlopsTest, SelectiveRecomputationAddsTheScoresOnceMore) {
  // Q·K^T and P·V: 2·2·s·h a token and layer.
  const double expected = 4.0 * 32 * 96 * (16 * 32) * 3;
  for (const Maker make : kMakers) {
    const Schedule schedule = PlanWith(make, SmallTraining(Recomputation::kSelective, false));
    const Flops again = schedule.hardware_flops - schedule.model_flops;
    EXPECT_NEAR(again.value() / expected, 1, 1e-9);
  }
}

TEST(HardwareFlopsTest, ManyEqualMicroBatchesCountAsOften) {
  Training training = SmallTraining(Recomputation::kFull, true);
  const Schedule few = PlanWith(MakeMegatronOf8, training);
  training.batch *= 16;
  training.micro_batches *= 16;
  const Schedule many = PlanWith(MakeMegatronOf8, training);
  EXPECT_FALSE(many.roles[0].repeats.empty());
  EXPECT_NEAR(many.hardware_flops / few.hardware_flops, 16, 1e-9);
}

TEST(HardwareFlopsTest, WithoutRecomputationTheyAreTheModels) {
  for (const Maker make : kMakers) {
    const Schedule schedule = PlanWith(make, SmallTraining(Recomputation::kNone, true));
    EXPECT_EQ(schedule.hardware_flops, schedule.model_flops);
  }
}

}  // namespace
}  // namespace rehearse
