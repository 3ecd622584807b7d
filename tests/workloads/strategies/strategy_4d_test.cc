#include "workloads/strategies/strategy_4d.h"

#include <map>

#include <gtest/gtest.h>

#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "workloads/cost_models/axonn_model.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace strategy_4d_test {

GptModel SmallModel() {
  GptModel model;
  model.name = "small";
  model.layers = 3;
  model.hidden = 768;
  model.heads = 12;
  model.vocabulary = 3072;
  return model;
}

Training SmallTraining() {
  Training training;
  training.batch = 48;
  training.sequence = 128;
  return training;
}

FourDOptions Grid(uint32_t column, uint32_t row, uint32_t depth, uint32_t data) {
  FourDOptions options;
  options.column = column;
  options.row = row;
  options.depth = depth;
  options.data = data;
  return options;
}

Schedule Plan(const FourDOptions& options, const Training& training = SmallTraining()) {
  const Network network = MakeDecoder(SmallModel(), training);
  return PlanStep(network, training, MakeFourD(options, network));
}

// Bytes of collectives of a kind on an axis that belong to the layers' products.
double BytesOf(const Schedule& schedule, const std::string& axis, CollectiveKind kind,
               Phase phase) {
  double bytes = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (!collective || collective->kind != kind || op.tag.phase != phase || op.tag.layer < 0 ||
        op.name.find("statistics") != std::string::npos) {
      continue;
    }
    if (schedule.communicators[collective->communicator.index()].name() == axis) {
      bytes += collective->bytes.value();
    }
  }
  return bytes;
}

size_t CountOps(const Schedule& schedule, const std::string& part) {
  size_t count = 0;
  for (const Op& op : schedule.roles[0].ops) count += op.name.find(part) != std::string::npos;
  return count;
}

TEST(FourDTest, BytesAreThoseOfAxonnsEquations) {
  // Equations 4-8, corrected (workloads/strategies/strategy_4d.h), on a grid of four different
  // sizes. Elements of a product X (m×k)·W (k×n), m already divided by G_data; a transposed product
  // swaps r and c.
  const uint32_t c = 2;
  const uint32_t r = 3;
  const uint32_t d = 4;
  const uint32_t data = 2;
  const Schedule schedule = Plan(Grid(c, r, d, data));
  const double h = 768;
  const double m = 48.0 * 128 / data;
  const double layers = 3;
  struct Product {
    double k, n;
    bool transposed;
  };
  const Product products[] = {{h, 3 * h, false}, {h, h, true}, {h, 4 * h, false}, {4 * h, h, true}};
  double blocks = 0;  // kn/(c r)
  std::map<std::string, double> forward;
  std::map<std::string, double> backward;
  for (const Product& p : products) {
    blocks += p.k * p.n / (c * r);
    const std::string in = p.transposed ? "column" : "row";
    const std::string out = p.transposed ? "row" : "column";
    const double in_size = p.transposed ? c : r;
    const double out_size = p.transposed ? r : c;
    forward[in] += m * p.n / (d * out_size);   // mn/(G_d G_c) on r
    backward[out] += m * p.k / (d * in_size);  // mk/(G_d G_r) on c
  }
  const double bf16 = 2 * layers;
  for (const Phase phase : {Phase::kForward, Phase::kRecompute}) {
    EXPECT_EQ(BytesOf(schedule, "depth", CollectiveKind::kAllGather, phase), bf16 * blocks);
    for (const std::string axis : {"row", "column"}) {
      EXPECT_EQ(BytesOf(schedule, axis, CollectiveKind::kAllReduce, phase), bf16 * forward[axis]);
    }
  }
  for (const std::string axis : {"row", "column"}) {
    EXPECT_EQ(BytesOf(schedule, axis, CollectiveKind::kAllReduce, Phase::kBackward),
              bf16 * backward[axis]);
  }
  EXPECT_EQ(BytesOf(schedule, "depth", CollectiveKind::kReduceScatter, Phase::kBackward),
            bf16 * blocks);
  EXPECT_EQ(BytesOf(schedule, "data", CollectiveKind::kAllReduce, Phase::kSynchronize),
            4 * layers * blocks / d);  // fp32
}

TEST(FourDTest, EverySwitchCombinationIsAValidScheduleWithoutDataRaces) {
  for (uint32_t bits = 0; bits < 32; ++bits) {
    for (const auto& grid : {Grid(2, 2, 2, 2), Grid(1, 1, 8, 1), Grid(4, 1, 1, 2), Grid(1, 3, 2, 1),
                             Grid(1, 1, 1, 4), Grid(1, 1, 1, 1)}) {
      for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
        for (const uint32_t micro_batches : {1u, 3u}) {
          FourDOptions options = grid;
          options.transpose_alternate_layers = (bits & 1) != 0;
          options.overlap_all_reduce = (bits & 2) != 0;
          options.overlap_reduce_scatter = (bits & 4) != 0;
          options.overlap_all_gather = (bits & 8) != 0;
          options.cached_layers = (bits & 16) != 0 ? 2 : 0;
          Training training = SmallTraining();
          training.recomputation = recomputation;
          training.micro_batches = micro_batches;
          const Schedule schedule = Plan(options, training);
          EXPECT_NO_THROW(CheckSchedule(schedule));
          EXPECT_NO_THROW(CheckBuffers(schedule));
        }
      }
    }
  }
}

TEST(FourDTest, TransposingAlternateLayersLeavesNoGatherBetweenThem) {
  FourDOptions options = Grid(2, 2, 1, 1);
  EXPECT_EQ(CountOps(Plan(options), "all-gather"), 0u);
  EXPECT_EQ(CountOps(Plan(options), "interleave"), 0u);
  options.transpose_alternate_layers = false;
  const Schedule baseline = Plan(options);
  // Without it every product's output is gathered along c: forward and recomputation, and every
  // input's gradient along r.
  const double h = 768;
  const double m = 48.0 * 128;
  EXPECT_EQ(BytesOf(baseline, "column", CollectiveKind::kAllGather, Phase::kForward),
            2 * 3 * m * 9 * h);  // n = 3h + h + 4h + h
  EXPECT_EQ(BytesOf(baseline, "row", CollectiveKind::kAllGather, Phase::kBackward),
            2 * 3 * m * 7 * h);  // k = h + h + h + 4h
}

TEST(FourDTest, CachingSavesTheSecondGatherOfTheFirstLayers) {
  FourDOptions options = Grid(1, 1, 2, 1);
  options.cached_layers = 0;
  // Embedding, output and 3 layers of 4 once forward; 12 again for the recomputation.
  EXPECT_EQ(CountOps(Plan(options), "all-gather"), 26u);
  options.cached_layers = 2;
  EXPECT_EQ(CountOps(Plan(options), "all-gather"), 18u);
}

TEST(FourDTest, WithoutRecomputationWeightsAreGatheredOnce) {
  Training training = SmallTraining();
  training.recomputation = Recomputation::kNone;
  const Schedule schedule = Plan(Grid(1, 1, 2, 1), training);
  EXPECT_EQ(CountOps(schedule, "all-gather"), 14u);
  EXPECT_EQ(schedule.hardware_flops, schedule.model_flops);
}

TEST(FourDTest, PrefetchedGathersAreIssuedOneProductAhead) {
  const Schedule schedule = Plan(Grid(1, 1, 2, 1));
  const std::vector<Op>& ops = schedule.roles[0].ops;
  // In the forward pass the gather of `projection` stands before the product `qkv` of the same
  // layer.
  size_t gather = 0;
  size_t product = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].tag.layer != 1 || ops[i].tag.phase != Phase::kForward) continue;
    if (ops[i].name == "all-gather projection") gather = i;
    if (ops[i].name == "qkv") product = i;
  }
  ASSERT_GT(gather, 0u);
  EXPECT_LT(gather, product);
}

TEST(FourDTest, ProductsCountTheFlopsOfTheFormula) {
  // Sum of all GEMM and attention flops over ranks against Narayanan's formula, with whole rows (no
  // repeated attention core). The formula counts the attention core without the causal mask: 4·s·h
  // per token and pass against our 2·s·h, and backward as twice forward where the fused core does
  // 2.5 times that.
  const Schedule schedule = Plan(Grid(2, 1, 2, 2));
  double gemm = 0;
  double attention = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (!compute) continue;
    (compute->kind == ComputeKind::kAttention ? attention : gemm) += compute->flops.value();
  }
  gemm *= 8;
  attention *= 8;
  const double tokens = 48 * 128;
  const double h = 768;
  const double layers = 3;
  EXPECT_NEAR(gemm, tokens * (96 * layers * h * h + 6 * 3072 * h), 1e-9 * gemm);
  EXPECT_NEAR(attention, tokens * layers * (1 + 1 + 2.5) * 2 * 128 * h, 1e-9 * attention);
}

TEST(FourDTest, TheAttentionCoreIsRepeatedAlongTheRowAxis) {
  const auto flops = [](const Schedule& schedule) {
    double sum = 0;
    for (const Op& op : schedule.roles[0].ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute && compute->kind == ComputeKind::kAttention) sum += compute->flops.value();
    }
    return sum;
  };
  EXPECT_DOUBLE_EQ(flops(Plan(Grid(4, 1, 1, 1))) * 4, flops(Plan(Grid(1, 1, 1, 1))));
  EXPECT_DOUBLE_EQ(flops(Plan(Grid(1, 4, 1, 1))), flops(Plan(Grid(1, 1, 1, 1))));
}

TEST(FourDTest, ParametersGradientsAndOptimizerAreDividedOverTheTensorRanks) {
  // 2 + 4 + 12 bytes per parameter; biases and norms are divided along r only, so compare the
  // matrices.
  const MemoryUse one = MemoryOfFullestRank(Plan(Grid(1, 1, 1, 1)));
  const MemoryUse eight = MemoryOfFullestRank(Plan(Grid(2, 2, 2, 1)));
  EXPECT_NEAR(one.gradients.value() / one.parameters.value(), 2, 1e-9);
  EXPECT_NEAR(one.optimizer.value() / one.parameters.value(), 6, 1e-9);
  EXPECT_NEAR(one.parameters.value(), 2 * SmallModel().Parameters(), 1);
  EXPECT_NEAR(eight.parameters.value() * 8 / one.parameters.value(), 1, 0.02);
}

TEST(FourDTest, TheScheduleDoesNotGrowWithDataParallelReplicas) {
  EXPECT_EQ(Plan(Grid(2, 2, 2, 1)).roles[0].ops.size() + 12 + 1 + 1,
            Plan(Grid(2, 2, 2, 2)).roles[0].ops.size());  // 13 weights and the small parameters
}

void ExpectRefused(const FourDOptions& options, const Training& training, const std::string& part) {
  try {
    Plan(options, training);
    FAIL() << "expected: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(FourDTest, WhatCannotBeSplitIsRefusedByName) {
  ExpectRefused(Grid(8, 1, 1, 1), SmallTraining(), "12 attention heads");
  ExpectRefused(Grid(1, 5, 1, 1), SmallTraining(), "768 columns of table \"embedding\"");
  ExpectRefused(Grid(1, 1, 5, 1), SmallTraining(), "48 sequences");
  FourDOptions options = Grid(1, 1, 2, 1);
  options.cached_layers = 4;
  ExpectRefused(options, SmallTraining(), "4 cached layers");
}

TEST(AxonnModelTest, BandwidthFollowsThePapersRule) {
  const AxonnBandwidths& table = PerlmutterBandwidths();
  const double gib = 1073741824.0;
  // Figure 5: two rings share the links between nodes, each gets half; four or more a quarter.
  EXPECT_DOUBLE_EQ(AxonnBandwidth(table, 1, 8).value(), 80 * gib);
  EXPECT_DOUBLE_EQ(AxonnBandwidth(table, 2, 4).value(), 40 * gib);
  EXPECT_DOUBLE_EQ(AxonnBandwidth(table, 4, 4).value(), 20 * gib);
  EXPECT_DOUBLE_EQ(AxonnBandwidth(table, 16, 4).value(), 20 * gib);
  EXPECT_DOUBLE_EQ(AxonnBandwidth(table, 1, 2).value(), 76 * gib);
  EXPECT_THROW(AxonnBandwidth(table, 1, 3), Error);
}

TEST(AxonnModelTest, TheRunningExampleFollowsTheEquations) {
  // GPT-20B, 32k tokens, 2x2x4x1 on 16 GPUs. Weights: 12 h^2 per layer over c·r = 4, bf16, over 4
  // ranks of depth at 20 GiB/s: eq. 4 and 5, twice gathered and once scattered.
  const GptModel* model = nullptr;
  for (const GptModel& known : KnownModels()) {
    if (known.name == "gpt-20b") model = &known;
  }
  Training training;
  training.batch = 16;
  training.sequence = 2048;
  const AxonnPrediction prediction =
      PredictAxonn(*model, training, Grid(2, 2, 4, 1), PerlmutterBandwidths());
  const double h = 7168;
  const double gib = 1073741824.0;
  const double depth = 32 * 0.75 * (12 * h * h / 4) * 2 / (20 * gib);
  EXPECT_NEAR(prediction.all_gather.value(), 2 * depth, 1e-9);
  EXPECT_NEAR(prediction.reduce_scatter.value(), depth, 1e-9);
  // Forward all-reduces: m/G_d rows, n/2 columns, n = 3h + h + 4h + h; 2(p-1)/p = 1; 76 GiB/s;
  // twice.
  const double rows = 32768.0 / 4;
  EXPECT_NEAR(prediction.forward_all_reduce.value(), 2 * 32 * rows * 9 * h / 2 * 2 / (76 * gib),
              1e-9);
  EXPECT_EQ(prediction.data_all_reduce.value(), 0);
}

}  // namespace strategy_4d_test
}  // namespace rehearse
