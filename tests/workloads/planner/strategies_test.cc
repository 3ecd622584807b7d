// What strategies have in common: schedules are valid, degenerate cases coincide op for op.
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/mlp_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_sbp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace strategies_test {

GptModel SmallModel() {
  GptModel model;
  model.name = "small";
  model.layers = 2;
  model.hidden = 96;
  model.heads = 8;
  model.vocabulary = 192;
  return model;
}

GptModel SmallLlama() {
  GptModel model = SmallModel();
  model.name = "small llama";
  model.llama = true;
  model.groups = 4;
  model.feed_forward = 256;
  model.tied = false;
  return model;
}

Training SmallTraining() {
  Training training;
  training.batch = 16;
  training.sequence = 8;
  return training;
}

using Maker = std::function<Strategy(const Network&)>;

Schedule PlanWith(const Maker& make, Training training = SmallTraining(),
                  const GptModel& model = SmallModel()) {
  const Network network = MakeDecoder(model, training);
  return PlanStep(network, training, make(network));
}

// Everything about an op, with the groups of its communicator instead of its name; streams are
// numbered in the order of first use.
std::vector<std::string> OpsOf(const Schedule& schedule) {
  std::vector<std::string> ops;
  const Role& role = schedule.roles[0];
  for (const Op& op : role.ops) {
    std::ostringstream text;
    text << op.name << " | " << Name(op.tag.phase) << " " << op.tag.layer << " "
         << op.tag.micro_batch << " | ";
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      text << Name(compute->kernel) << " " << compute->gemm.m << "x" << compute->gemm.n << "x"
           << compute->gemm.k << " " << compute->flops.value() << " " << compute->bytes.value();
    } else {
      const auto& collective = std::get<Collective>(op.work);
      const Communicator& communicator = schedule.communicators[collective.communicator.index()];
      text << Name(collective.kind) << " " << collective.bytes.value() << " among";
      for (uint32_t member = 0; member < communicator.size(); ++member) {
        text << " " << communicator.Rank(0, member);
      }
    }
    text << " | after";
    for (const OpId before : op.after) text << " " << before.index();
    ops.push_back(text.str());
  }
  return ops;
}

void ExpectSameOps(const Schedule& a, const Schedule& b) {
  const std::vector<std::string> ops_a = OpsOf(a);
  const std::vector<std::string> ops_b = OpsOf(b);
  ASSERT_EQ(ops_a.size(), ops_b.size());
  for (size_t i = 0; i < ops_a.size(); ++i) ASSERT_EQ(ops_a[i], ops_b[i]) << "op " << i;
}

Maker FourD(uint32_t column, uint32_t row, uint32_t depth, uint32_t data) {
  return [=](const Network& network) {
    FourDOptions options;
    options.column = column;
    options.row = row;
    options.depth = depth;
    options.data = data;
    return MakeFourD(options, network);
  };
}
Maker Megatron(uint32_t tensor, uint32_t data, bool sequence_parallel = false) {
  return [=](const Network& network) {
    MegatronOptions options;
    options.tensor = tensor;
    options.data = data;
    options.sequence_parallel = sequence_parallel;
    return MakeMegatron(options, network);
  };
}
Maker Zero(uint32_t stage, uint32_t shard, uint32_t replicas) {
  return [=](const Network& network) {
    ZeroOptions options;
    options.stage = stage;
    options.shard = shard;
    options.replicas = replicas;
    return MakeZero(options, network);
  };
}
Maker Atp(uint32_t d1, uint32_t d2, uint32_t data, uint32_t chunks = 1) {
  return [=](const Network& network) {
    AtpOptions options;
    options.d1 = d1;
    options.d2 = d2;
    options.data = data;
    options.chunks = chunks;
    return MakeAtp(options, network);
  };
}
Maker Summa(uint32_t q, uint32_t depth, uint32_t data) {
  return [=](const Network& network) {
    return MakeSumma({.q = q, .depth = depth, .data = data}, network);
  };
}
Maker Combined(const CombinedOptions& options) {
  return [=](const Network& network) { return MakeCombined(options, network); };
}
Maker Combined(uint32_t tensor, uint32_t shard, uint32_t replicas, uint32_t data, uint32_t stage,
               bool sequence_parallel = false) {
  CombinedOptions options;
  options.tensor = tensor;
  options.data = data;
  options.zero.shard = shard;
  options.zero.replicas = replicas;
  options.zero.stage = stage;
  options.sequence_parallel = sequence_parallel;
  return Combined(options);
}
// The same numbers for all products; a tied output layer has the table's, exchanged.
Maker Sbp(uint32_t p0, uint32_t p1, uint32_t p2) {
  return [=](const Network& network) {
    SbpOptions options;
    options.nodes = p0 * p1 * p2;
    for (const NetworkMatrix& matrix : network.matrices) {
      const SbpNumbers numbers{.nodes = {p0, p1, p2}};
      options.products.push_back(matrix.tied ? Exchanged(numbers) : numbers);
    }
    return MakeSbp(options, network);
  };
}
Maker DataParallel(uint32_t data) {
  return [=](const Network& network) { return MakeDataParallel(data, false, network); };
}

// ---- degenerate cases ---------------------------------------------------------------------------

TEST(DegenerateStrategiesTest, FourDWithDepthOnlyIsFsdp) {
  // With recomputation, both drop gathered weights after the forward pass.
  ExpectSameOps(PlanWith(FourD(1, 1, 4, 1)), PlanWith(Zero(3, 4, 1)));
}

TEST(DegenerateStrategiesTest, FourDWithDepthAndDataIsHybridSharding) {
  ExpectSameOps(PlanWith(FourD(1, 1, 4, 2)), PlanWith(Zero(3, 4, 2)));
}

TEST(DegenerateStrategiesTest, FourDWithColumnsOnlyIsMegatron) {
  ExpectSameOps(PlanWith(FourD(4, 1, 1, 1)), PlanWith(Megatron(4, 1)));
  ExpectSameOps(PlanWith(FourD(4, 1, 1, 2)), PlanWith(Megatron(4, 2)));
}

TEST(DegenerateStrategiesTest, AtpOnOneDimensionIsMegatron) {
  ExpectSameOps(PlanWith(Atp(4, 1, 1)), PlanWith(Megatron(4, 1)));
  ExpectSameOps(PlanWith(Atp(4, 1, 2)), PlanWith(Megatron(4, 2)));
}

TEST(DegenerateStrategiesTest, SbpWithP0OnlyIsDataParallel) {
  ExpectSameOps(PlanWith(Sbp(4, 1, 1)), PlanWith(DataParallel(4)));
}

TEST(DegenerateStrategiesTest, ZeroStageNoughtAndOneRankAreDataParallel) {
  ExpectSameOps(PlanWith(Zero(0, 4, 1)), PlanWith(DataParallel(4)));
  ExpectSameOps(PlanWith(Megatron(1, 4)), PlanWith(DataParallel(4)));
  ExpectSameOps(PlanWith(Summa(1, 1, 4)), PlanWith(DataParallel(4)));
  ExpectSameOps(PlanWith(FourD(1, 1, 1, 4)), PlanWith(DataParallel(4)));
}

TEST(DegenerateStrategiesTest, CombinedWithTensorAndDataIsMegatron) {
  for (const bool sequence_parallel : {false, true}) {
    ExpectSameOps(PlanWith(Combined(4, 1, 1, 2, 0, sequence_parallel)),
                  PlanWith(Megatron(4, 2, sequence_parallel)));
    // Its distributed optimizer is ZeRO-1 over data.
    const Maker megatron = [=](const Network& network) {
      return MakeMegatron({.tensor = 4,
                           .data = 2,
                           .sequence_parallel = sequence_parallel,
                           .distributed_optimizer = true},
                          network);
    };
    ExpectSameOps(PlanWith(Combined(4, 2, 1, 1, 1, sequence_parallel)), PlanWith(megatron));
  }
  // In buckets, with gathers beside the next forward pass.
  for (const bool overlaps : {false, true}) {
    MegatronOptions megatron{.tensor = 2, .data = 4, .overlap_gradients = overlaps};
    megatron.distributed_optimizer = true;
    megatron.bucket_elements = 1;
    megatron.overlap_parameter_gathers = overlaps;
    CombinedOptions options;
    options.tensor = 2;
    options.zero.shard = 4;
    options.zero.stage = 1;
    options.zero.overlap_all_reduce = overlaps;
    options.bucket_elements = 1;
    options.overlap_parameter_gathers = overlaps;
    ExpectSameOps(PlanWith(Combined(options)), PlanWith([&](const Network& network) {
                    return MakeMegatron(megatron, network);
                  }));
  }
}

TEST(DegenerateStrategiesTest, CombinedWithoutTensorIsDataParallelismAndItsShardedForms) {
  ExpectSameOps(PlanWith(Combined(1, 1, 1, 8, 0)), PlanWith(DataParallel(8)));
  for (const uint32_t stage : {0u, 1u, 2u, 3u}) {
    ExpectSameOps(PlanWith(Combined(1, 4, 2, 1, stage)), PlanWith(Zero(stage, 4, 2)));
  }
  ZeroOptions zero{.shard = 4, .replicas = 2};
  zero.by_layer = true;
  zero.copies = ShardCopies::kPerParameter;
  zero.reduces_in_fp32 = true;
  zero.overlap_all_reduce = true;
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    Training training = SmallTraining();
    training.recomputation = recomputation;
    CombinedOptions options;
    options.zero = zero;
    ExpectSameOps(
        PlanWith(Combined(options), training),
        PlanWith([&](const Network& network) { return MakeZero(zero, network); }, training));
  }
}

TEST(DegenerateStrategiesTest, FourDWithDepthAndColumnsIsFsdpUnderTensorParallelism) {
  CombinedOptions options;
  options.tensor = 4;
  options.data = 2;
  options.zero.shard = 2;
  ExpectSameOps(PlanWith(Combined(options)), PlanWith(FourD(4, 1, 2, 2)));
}

TEST(DegenerateStrategiesTest, FourDWithRowsOnlyIsMegatronWithTheProductsExchanged) {
  // Row only: the first product of each pair sums, the second splits columns: the same collectives
  // in the other half of each pair. Bytes on the axis, forward and backward, must exceed Megatron's
  // by the wider products' (3h and 4h instead of h and h).
  const auto bytes = [](const Schedule& schedule) {
    double sum = 0;
    for (const Op& op : schedule.roles[0].ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective != nullptr && op.tag.layer >= 0 && op.tag.phase == Phase::kForward &&
          op.name.find("statistics") == std::string::npos) {
        sum += collective->bytes.value();
      }
    }
    return sum;
  };
  EXPECT_EQ(bytes(PlanWith(FourD(1, 4, 1, 1))), bytes(PlanWith(Megatron(4, 1))) * 7 / 2);
}

// ---- all strategies on all networks -------------------------------------------------------------

struct Named {
  const char* name;
  Maker make;
};

std::vector<Named> Strategies() {
  return {{"4d", FourD(2, 2, 2, 2)},
          {"megatron", Megatron(4, 2)},
          {"sequence parallel", Megatron(4, 2, true)},
          {"data parallel", DataParallel(8)},
          {"zero-1", Zero(1, 4, 2)},
          {"zero-2", Zero(2, 4, 2)},
          {"fsdp", Zero(3, 4, 2)},
          {"atp", Atp(2, 2, 2)},
          {"atp in chunks", Atp(2, 2, 2, 2)},
          {"sbp", Sbp(2, 2, 2)},
          {"combined", Combined(2, 2, 2, 2, 3, true)},
          {"summa", Summa(2, 2, 2)}};
}

TEST(StrategiesTest, SchedulesAreValidWithoutDataRaces) {
  for (const Named& strategy : Strategies()) {
    for (const GptModel& model : {SmallModel(), SmallLlama()}) {
      for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
        for (const uint32_t micro_batches : {1u, 2u}) {
          Training training = SmallTraining();
          training.recomputation = recomputation;
          training.micro_batches = micro_batches;
          const Schedule schedule = PlanWith(strategy.make, training, model);
          EXPECT_NO_THROW(CheckSchedule(schedule)) << strategy.name;
          EXPECT_NO_THROW(CheckBuffers(schedule)) << strategy.name;
        }
      }
    }
  }
}

TEST(StrategiesTest, EveryOpSaysWhatItComputesAndOnWhat) {
  for (const Named& strategy : Strategies()) {
    const Schedule schedule = PlanWith(strategy.make);
    const Role& role = schedule.roles[0];
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      EXPECT_TRUE(compute == nullptr || compute->kernel != Kernel::kNone)
          << strategy.name << ": " << op.name;
      for (const auto* buffers : {&op.reads, &op.writes}) {
        for (const BufferId id : *buffers) {
          const Buffer& buffer = role.buffers[id.index()];
          EXPECT_GT(buffer.rows * buffer.columns, 0u) << strategy.name << ": " << buffer.name;
        }
      }
    }
  }
}

TEST(StrategiesTest, ProductsDoTheSameWorkUnderEveryStrategy) {
  // Flops of all GEMMs over all ranks: nothing is computed twice, nothing is left out.
  const auto gemms = [](const Schedule& schedule) {
    double flops = 0;
    for (const Op& op : schedule.roles[0].ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute != nullptr && compute->kernel == Kernel::kGemm) flops += compute->flops.value();
    }
    return flops * schedule.ranks();
  };
  const double serial = gemms(PlanWith(DataParallel(1)));
  for (const Named& strategy : Strategies()) {
    EXPECT_DOUBLE_EQ(gemms(PlanWith(strategy.make)), serial) << strategy.name;
  }
}

TEST(StrategiesTest, MlpChainsTakeEveryStrategy) {
  const MlpModel model = {"mlp", {64, 128, 32, 96, 16}};
  Training training;
  training.batch = 32;
  training.recomputation = Recomputation::kNone;
  const Network network = MakeMlp(model, training);
  for (const Named& strategy : Strategies()) {
    const Schedule schedule = PlanStep(network, training, strategy.make(network));
    EXPECT_NO_THROW(CheckSchedule(schedule)) << strategy.name;
    EXPECT_NO_THROW(CheckBuffers(schedule)) << strategy.name;
  }
}

// ---- what HFU counts ----------------------------------------------------------------------------

Training RecomputingTraining(Recomputation recomputation, bool fused) {
  Training training = SmallTraining();
  training.micro_batches = 2;
  training.recomputation = recomputation;
  training.attention = fused ? AttentionKernel::kFused : AttentionKernel::kUnfused;
  return training;
}

const Maker kCounted[] = {FourD(2, 2, 2, 2), Atp(2, 2, 1, 2), Megatron(4, 2), Zero(3, 8, 1)};

TEST(HardwareFlopsTest, FullRecomputationCountsAsNarayananDoes) {
  // 96·B·s·l·h²·(1 + s/6h + V/16lh): everything a fourth time except the output layer. The
  // attention core counts without its mask, though a fused one leaves half of the work out, and
  // once, though ranks of a row of 4D all do it.
  const double h = 96, l = 2, s = 8, v = 192;
  const double expected = 96 * 16 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  for (const bool fused : {false, true}) {
    for (const Maker& make : kCounted) {
      const Schedule schedule = PlanWith(make, RecomputingTraining(Recomputation::kFull, fused));
      EXPECT_NEAR(schedule.hardware_flops.value() / expected, 1, 1e-12);
    }
  }
}

TEST(HardwareFlopsTest, SelectiveRecomputationAddsTheScoresOnceMore) {
  // Q·K^T and P·V: 2·2·s·h per token and layer.
  const double expected = 4.0 * 8 * 96 * (16 * 8) * 2;
  for (const Maker& make : kCounted) {
    const Schedule schedule = PlanWith(make, RecomputingTraining(Recomputation::kSelective, false));
    const Flops again = schedule.hardware_flops - schedule.model_flops;
    EXPECT_NEAR(again.value() / expected, 1, 1e-9);
  }
}

TEST(HardwareFlopsTest, ManyEqualMicroBatchesCountAsOften) {
  Training training = RecomputingTraining(Recomputation::kFull, true);
  const Schedule few = PlanWith(Megatron(4, 2), training);
  training.batch *= 16;
  training.micro_batches *= 16;
  const Schedule many = PlanWith(Megatron(4, 2), training);
  EXPECT_FALSE(many.roles[0].repeats.empty());
  EXPECT_NEAR(many.hardware_flops / few.hardware_flops, 16, 1e-9);
}

TEST(HardwareFlopsTest, WithoutRecomputationTheyAreTheModels) {
  for (const Maker& make : kCounted) {
    const Schedule schedule = PlanWith(make, RecomputingTraining(Recomputation::kNone, true));
    EXPECT_EQ(schedule.hardware_flops, schedule.model_flops);
  }
}

// ---- what is refused ----------------------------------------------------------------------------

void ExpectRefused(const Maker& make, const std::vector<std::string>& parts,
                   Training training = SmallTraining()) {
  try {
    PlanWith(make, training);
    FAIL() << "expected: " << parts.front();
  } catch (const Error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(StrategiesTest, WhatCannotBeSplitIsRefusedByTensorAxisAndSizes) {
  ExpectRefused(Megatron(3, 1), {"8 attention heads", "3 parts", "\"tensor\""});
  ExpectRefused(Summa(5, 1, 1), {"8 attention heads", "\"column\""});
  ExpectRefused(Atp(2, 8, 1), {"8 attention heads", "16 parts", "\"d2\""});
  ExpectRefused(DataParallel(3), {"16 sequences", "3 groups"});
  ExpectRefused(Atp(2, 1, 1, 5), {"16 sequences", "5 chunks"});
}

TEST(StrategiesTest, AxesOfACombinedStrategyNestAsTheirOrderSays) {
  CombinedOptions options;
  options.tensor = 2;
  options.data = 4;
  options.zero.shard = 2;
  const auto names = [](const Strategy& strategy) {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : strategy.mesh.axes()) axes.push_back(axis.name);
    return axes;
  };
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(MakeCombined(options, network)), (Names{"tensor", "shard", "data"}));
  options.order = {CombinedAxis::kShard, CombinedAxis::kReplicas};
  EXPECT_EQ(names(MakeCombined(options, network)), (Names{"shard", "tensor", "data"}));
}

Maker WithContext(uint32_t context, ContextKind kind, uint32_t tensor = 1, bool balanced = true) {
  CombinedOptions options;
  options.context = context;
  options.context_kind = kind;
  options.balances_context = balanced;
  options.tensor = tensor;
  options.zero.stage = 0;
  return Combined(options);
}

TEST(StrategiesTest, SequencesThatCannotBeSharedAreRefused) {
  // 8 tokens, 8 heads.
  ExpectRefused(WithContext(8, ContextKind::kRing),
                {"8 tokens", "16 equal runs", "two for each of 8 ranks", "\"context\""});
  ExpectRefused(WithContext(3, ContextKind::kAllGather, 1, false), {"8 tokens", "3 equal runs"});
  ExpectRefused(WithContext(4, ContextKind::kUlysses, 4),
                {"8 attention heads", "16 parts", "\"context\""});
  Training unfused = SmallTraining();
  unfused.attention = AttentionKernel::kUnfused;
  ExpectRefused(WithContext(2, ContextKind::kRing), {"unfused attention", "2 ranks share"},
                unfused);
}

TEST(StrategiesTest, OnlyDecodersHaveSequencesToShare) {
  Training training;
  training.batch = 32;
  const Network network = MakeMlp({"mlp", {64, 128, 16}}, training);
  try {
    PlanStep(network, training, WithContext(2, ContextKind::kRing)(network));
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("expected a decoder"), std::string::npos);
  }
}

TEST(DegenerateStrategiesTest, OneRankASequenceIsNoContextParallelism) {
  for (const ContextKind kind :
       {ContextKind::kRing, ContextKind::kAllGather, ContextKind::kUlysses}) {
    ExpectSameOps(PlanWith(WithContext(1, kind, 4)), PlanWith(Megatron(4, 1)));
  }
}

TEST(StrategiesTest, SbpNumbersMustMultiplyToTheMachines) {
  ExpectRefused(
      [](const Network& network) {
        SbpOptions options;
        options.nodes = 8;
        options.products.assign(network.matrices.size(), {.nodes = {2, 2, 1}});
        return MakeSbp(options, network);
      },
      {"\"embedding\"", "2·2·1 = 4", "expected 8"});
}

TEST(StrategiesTest, OperandsThatDoNotMultiplyAreRefused) {
  ExpectRefused(
      [](const Network& network) {
        Strategy strategy = MakeDataParallel(2, false, network);
        strategy.products[1].w = {S(0)};
        return strategy;
      },
      {"\"qkv\"", "[S(0)]", "do not multiply"});
}

TEST(TiedMatricesTest, TheirGradientsMustBeSummedAlike) {
  const Training training = SmallTraining();
  const Network network = MakeDecoder(SmallModel(), training);
  Strategy strategy = MakeDataParallel(2, /*overlap_all_reduce=*/false, network);
  // Both ranks look up all rows, but each multiplies half of them with the output layer.
  strategy.products.front().x = {B()};
  try {
    PlanStep(network, training, strategy);
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("summed along the same axes"), std::string::npos)
        << error.what();
  }
}

}  // namespace strategies_test
}  // namespace rehearse
