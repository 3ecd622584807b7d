#include "workloads/planner/kernel_costs.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/support/preset_strategies.h"
#include "topology/devices/device.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace kernel_costs_test {

constexpr double kHidden = 64;
constexpr double kFeedForward = 256;
constexpr double kTokens = 8.0 * 32;
constexpr double kVocabulary = 512;

GptModel Model(bool llama) {
  GptModel model;
  model.name = "small";
  model.layers = 1;
  model.hidden = 64;
  model.heads = 4;
  model.vocabulary = 512;
  model.llama = llama;
  model.feed_forward = 256;
  return model;
}

Training Steps(KernelStyle kernels) {
  Training training;
  training.batch = 8;
  training.sequence = 32;
  training.recomputation = Recomputation::kNone;
  training.kernels = kernels;
  return training;
}

// The kernels of the first rank by name, the layer's and those outside.
std::map<std::string, Compute> KernelsOf(const Schedule& schedule) {
  std::map<std::string, Compute> kernels;
  for (const Op& op : schedule.roles[0].ops) {
    if (const auto* compute = std::get_if<Compute>(&op.work)) kernels[op.name] = *compute;
  }
  return kernels;
}

// Of one rank's step.
std::map<std::string, Compute> Kernels(const GptModel& model, const Training& training) {
  const Network network = MakeDecoder(model, training);
  return KernelsOf(PlanStep(network, training, MakeDataParallel(1, false, network)));
}

TEST(KernelCostsTest, EagerSwiGluWritesAndReadsOneArrayMore) {
  // Fused reads gate and up and writes: 3 arrays of m×f. Eager: silu reads and writes 2, the
  // product 3. Backward, compiled: dY, gate, up and two gradients are 5; fused: the halves that
  // torch.cat joins each read what they need, 2 more; eager: three kernels of 3 each.
  const double array = 2 * kTokens * kFeedForward;
  for (const auto& [style, forward, backward, launches] :
       {std::tuple(KernelStyle::kFused, 3, 7, 1u), std::tuple(KernelStyle::kEager, 5, 9, 2u),
        std::tuple(KernelStyle::kCompiled, 3, 5, 1u)}) {
    const auto kernels = Kernels(Model(true), Steps(style));
    EXPECT_EQ(kernels.at("swiglu").bytes.value(), forward * array);
    EXPECT_EQ(kernels.at("swiglu").kernels, launches);
    EXPECT_EQ(kernels.at("swiglu backward").bytes.value(), backward * array);
  }
}

// A model with experts whose second products' results have a bias, and clamped SwiGLUs.
GptModel ExpertsModel(bool biased) {
  GptModel model = Model(true);
  model.head_norms = true;
  model.experts =
      ExpertModel{.count = 4, .per_token = 2, .hidden = static_cast<uint64_t>(kFeedForward)};
  model.experts->biased = biased;
  return model;
}

TEST(KernelCostsTest, BiasesAndClampsOfExpertsAreKernelsOfTheirOwn) {
  const double rows = 2 * kTokens;  // of choices
  const double results = rows * kFeedForward;
  const double elements = rows * kHidden;
  const auto kernels = Kernels(ExpertsModel(true), Steps(KernelStyle::kFused));
  // Two clamps (2 of 2 arrays), the join of both (4).
  EXPECT_EQ(kernels.at("clamp experts up").bytes.value(), 8 * 2 * results);
  // What works on one half of the columns, or has a factor that is broadcast, is strided.
  EXPECT_EQ(kernels.at("clamp experts up").strided, 2 * results);
  EXPECT_EQ(kernels.at("clamp backward").strided, 5 * results);
  EXPECT_EQ(kernels.at("clamp backward").strided_bytes.value(), 19 * results);
  EXPECT_EQ(kernels.at("experts down bias").strided, elements);
  EXPECT_EQ(kernels.at("experts down bias backward").strided_bytes.value(), 16 * elements);
  // Of the gate: a mask (3 bytes) and a choice (5); of the other: two masks, their conjunction (3
  // each) and a choice (5); the join (8).
  EXPECT_EQ(kernels.at("clamp backward").bytes.value(), 30 * results);
  // Weighted bias (4), sum (2 + 4 + 4), join (8), cast (6).
  EXPECT_EQ(kernels.at("experts down bias").bytes.value(), 28 * elements);
  EXPECT_EQ(kernels.at("experts down bias").kernels, 2 * 4 + 2u);
  // Two casts (6 each) and the join (4); two products (8 each) and their sums (4 each).
  EXPECT_EQ(kernels.at("experts down bias backward").bytes.value(), 40 * elements);
  // With the gradients of the routers' weights: dY, gate and up once more.
  EXPECT_EQ(kernels.at("experts swiglu backward").bytes.value(), 10 * 2 * results);
  EXPECT_EQ(Kernels(ExpertsModel(false), Steps(KernelStyle::kFused)).count("experts down bias"),
            0u);
}

TEST(KernelCostsTest, FusedExpertsLeaveOnlyWhatIsWrittenBesides) {
  Training training = Steps(KernelStyle::kFused);
  training.fused_experts = true;
  training.products = ProductRecipe::kMxfp8;
  const double results = 2 * kTokens * kFeedForward;
  const auto kernels = Kernels(ExpertsModel(true), training);
  EXPECT_EQ(kernels.at("experts swiglu").bytes.value(), 2 * results);
  EXPECT_EQ(kernels.at("experts swiglu").kernels, 0u);
  EXPECT_EQ(kernels.at("experts swiglu backward").bytes.value(), 3 * 2 * results);
  EXPECT_EQ(kernels.at("cast experts swiglu").bytes.value(), 0);
  EXPECT_GT(kernels.at("cast tokens of experts").bytes.value(), 0);
  EXPECT_EQ(kernels.count("clamp experts up"), 0u);
  EXPECT_EQ(kernels.count("experts down bias"), 0u);
}

TEST(KernelCostsTest, PyTorchPermutesTokensByIndicesAndAddsRowsToZeros) {
  const double tokens = kTokens * kHidden;
  const double sent = 2 * tokens;  // each token goes to two experts
  Training training = Steps(KernelStyle::kFused);
  training.fused_permutation = true;
  const auto fused = Kernels(ExpertsModel(false), training);
  // Each row is read once and written once.
  EXPECT_EQ(fused.at("permute").bytes.value(), 2 * (tokens + sent));
  EXPECT_EQ(fused.at("permute backward").bytes.value(), 2 * (tokens + sent));
  EXPECT_EQ(fused.at("combine").bytes.value(), 2 * (tokens + sent));
  EXPECT_EQ(fused.at("combine backward").bytes.value(), 2 * (tokens + sent));
  EXPECT_EQ(fused.at("combine").kernels, 1u);
  for (const char* name : {"permute", "permute backward", "combine", "combine backward"})
    EXPECT_EQ(fused.at(name).strided, 0);

  for (const KernelStyle style : {KernelStyle::kFused, KernelStyle::kEager}) {
    const auto apart = Kernels(ExpertsModel(false), Steps(style));
    EXPECT_EQ(apart.at("permute").bytes.value(), 4 * sent);
    EXPECT_EQ(apart.at("permute backward").bytes.value(), 2 * tokens + 6 * sent);
    // Eager: times the routers' weights, which SwiGLU multiplies by otherwise.
    const bool weighs = style == KernelStyle::kEager;
    EXPECT_EQ(apart.at("combine").bytes.value(), 2 * tokens + (weighs ? 10 : 6) * sent);
    EXPECT_EQ(apart.at("combine backward").bytes.value(), (weighs ? 16 : 4) * sent);
    // Of each row: picked, added to zeros; weighted and added; picked and weighted.
    EXPECT_EQ(apart.at("permute").strided, sent);
    EXPECT_EQ(apart.at("permute backward").strided, sent);
    EXPECT_EQ(apart.at("combine").strided, (weighs ? 2 : 1) * sent);
    EXPECT_EQ(apart.at("combine backward").strided, (weighs ? 2 : 1) * sent);
    for (const auto& [name, kernel] : apart)
      EXPECT_LE(kernel.strided_bytes.value(), kernel.bytes.value()) << name;
  }
  // torch.compile joins what it can, whoever else has a kernel for it.
  training.kernels = KernelStyle::kCompiled;
  EXPECT_EQ(
      Kernels(ExpertsModel(false), training).at("combine").bytes.value(),
      Kernels(ExpertsModel(false), Steps(KernelStyle::kCompiled)).at("combine").bytes.value());
}

// What a rank does with 4 experts on two ranks.
std::map<std::string, Compute> KernelsOnTwo(bool has_capacity, const Training& training) {
  GptModel model = ExpertsModel(false);
  if (has_capacity) model.experts->capacity = 1;
  const Network network = MakeDecoder(model, training);
  CombinedOptions options;
  options.zero.shard = 2;
  options.zero.stage = 1;
  options.expert = 2;
  return KernelsOf(PlanStep(network, training, MakeCombined(options, network)));
}

TEST(KernelCostsTest, PaddedPiecesAreSwappedWhereOthersAreJoined) {
  const double sent = 2 * (kTokens / 2) * kHidden;
  Training training = Steps(KernelStyle::kFused);
  const Compute joined = KernelsOnTwo(false, training).at("order tokens of experts");
  const Compute swapped = KernelsOnTwo(true, training).at("order tokens of experts");
  EXPECT_EQ(joined.bytes.value(), 4 * sent);
  EXPECT_EQ(joined.strided, 0);
  EXPECT_EQ(swapped.bytes.value(), 4 * sent);
  EXPECT_EQ(swapped.strided, sent);
  EXPECT_EQ(swapped.strided_bytes.value(), 4 * sent);
  // And experts pick their tokens.
  EXPECT_EQ(KernelsOnTwo(false, training).at("route").kernels, 7u);
  EXPECT_EQ(KernelsOnTwo(true, training).at("route").kernels, 17u);
  EXPECT_EQ(KernelsOnTwo(false, training).at("route backward").kernels, 3u);
  EXPECT_EQ(KernelsOnTwo(true, training).at("route backward").kernels, 9u);
  training.fused_permutation = true;
  EXPECT_EQ(KernelsOnTwo(true, training).at("order tokens of experts").strided, 0);
}

TEST(KernelCostsTest, ResultsOfExpertsThatRunOneByOneAreJoined) {
  const double sent = 2 * (kTokens / 2) * kHidden;
  Training training = Steps(KernelStyle::kFused);
  EXPECT_EQ(KernelsOnTwo(false, training).count("join experts down"), 0u);
  training.sequential_experts = true;
  const auto kernels = KernelsOnTwo(false, training);
  EXPECT_EQ(kernels.at("join experts down").bytes.value(), 4 * sent);
  EXPECT_EQ(kernels.at("join d rows of experts").bytes.value(), 4 * sent);
}

TEST(KernelCostsTest, NormsOfHeadsReadAndWriteQueriesAndKeys) {
  const auto kernels = Kernels(ExpertsModel(false), Steps(KernelStyle::kFused));
  // As many elements as rotary embeddings turn, both read and written.
  EXPECT_EQ(kernels.at("norms of heads").bytes.value(), kernels.at("rotary").bytes.value());
  EXPECT_EQ(kernels.at("norms of heads backward").bytes.value(),
            2.5 * kernels.at("rotary").bytes.value());
  EXPECT_EQ(Kernels(Model(true), Steps(KernelStyle::kFused)).count("norms of heads"), 0u);
}

TEST(KernelCostsTest, TheResidualOfGptDropsOutInOneKernelOrTwo) {
  // m·h elements of 2 bytes: X, Z and the sum, and a byte of mask; eager also moves dropout's
  // result twice. Compiled, the mask is made again from its seed.
  const double elements = kTokens * kHidden;
  const std::string op = "bias, dropout, residual 1";
  EXPECT_EQ(Kernels(Model(false), Steps(KernelStyle::kFused)).at(op).bytes.value(), 7 * elements);
  EXPECT_EQ(Kernels(Model(false), Steps(KernelStyle::kEager)).at(op).bytes.value(), 11 * elements);
  EXPECT_EQ(Kernels(Model(false), Steps(KernelStyle::kCompiled)).at(op).bytes.value(),
            6 * elements);
}

TEST(KernelCostsTest, WithoutDropoutThereAreNeitherMasksNorTheirKernels) {
  Training training = Steps(KernelStyle::kFused);
  training.dropout = false;
  const auto kernels = Kernels(Model(false), training);
  EXPECT_EQ(kernels.count("embedding dropout"), 0u);
  EXPECT_EQ(kernels.count("bias, dropout, residual 1"), 0u);
  // The sum's kernel adds the bias: three arrays, and nothing for the bias alone.
  EXPECT_EQ(kernels.at("residual 1").bytes.value(), 3 * 2 * kTokens * kHidden);
  EXPECT_EQ(kernels.at("projection bias").bytes.value(), 0);
  EXPECT_EQ(kernels.at("projection bias").kernels, 0u);
}

TEST(KernelCostsTest, TheLossCopiesLogitsInFp32UnlessItIsFused) {
  const double logits = kTokens * kVocabulary;
  const auto backward = [&](const Training& training) {
    return Kernels(Model(true), training).at("cross entropy backward").bytes.value() / logits;
  };
  // Forward, a copy (2 + 4) and its maximum (4); subtract (8), exponentiate (8), sum (4).
  const auto megatron = Kernels(Model(true), Steps(KernelStyle::kFused));
  EXPECT_EQ(megatron.at("loss maximum").bytes.value() / logits, 10);
  EXPECT_EQ(megatron.at("cross entropy").bytes.value() / logits, 20);
  // Normalise (8) and scale (8) in fp32, to bf16 (4 + 2).
  EXPECT_EQ(backward(Steps(KernelStyle::kFused)), 22);
  // Zeros for the picked one (4), log_softmax' (16), to bf16 (6).
  EXPECT_EQ(backward(Steps(KernelStyle::kEager)), 26);
  // In place: read and written.
  EXPECT_EQ(backward(Steps(KernelStyle::kCompiled)), 4);
  Training fused = Steps(KernelStyle::kEager);
  fused.fused_cross_entropy = true;
  EXPECT_EQ(backward(fused), 4);
}

TEST(KernelCostsTest, AMetricReadsTheLogitsOnceMore) {
  Training training = Steps(KernelStyle::kFused);
  EXPECT_EQ(Kernels(Model(true), training).count("metric"), 0u);
  training.metrics = 2;
  // To fp32 (2 + 4), then twice read and once written.
  EXPECT_EQ(Kernels(Model(true), training).at("metric").bytes.value(), kTokens * kVocabulary * 18);
}

TEST(KernelCostsTest, ACompiledNormBehindASumOnlyWrites) {
  const ElementwiseCosts costs{KernelStyle::kCompiled, 2};
  EXPECT_EQ(costs.Norm(100, true, true).bytes, 200);
  EXPECT_EQ(costs.Norm(100, true, true).kernels, 0u);
  EXPECT_EQ(costs.Norm(100, true, false).bytes, 400);
  // Eager: cast 6, square 8, mean 4, scale 8, cast 6, gain 4.
  EXPECT_EQ((ElementwiseCosts{KernelStyle::kEager, 2}).Norm(100, true, false).bytes, 3600);
  // Nothing to cast in fp32: square 8, mean 4, scale 8, gain 8.
  EXPECT_EQ((ElementwiseCosts{KernelStyle::kEager, 4}).Norm(100, true, false).bytes, 2800);
}

TEST(KernelCostsTest, UnfusedAdamTouchesItsStateOperationByOperation) {
  Training training;
  // Fused: gradient 4, three fp32 numbers read and written (24), the bf16 parameter written (2).
  EXPECT_EQ(CostsOfAdam(training, 100, 10, 400, 1200, 2).update.bytes, 400 + 100 * 26);
  EXPECT_EQ(CostsOfAdam(training, 100, 10, 400, 1200, 2).update.kernels, 1u);
  // 20 fp32 accesses, the master read and the parameter written, gradients scaled.
  training.optimizer = OptimizerKernels::kLoop;
  EXPECT_EQ(CostsOfAdam(training, 100, 10, 400, 1200, 2).update.bytes, 800 + 100 * 86);
  EXPECT_EQ(CostsOfAdam(training, 100, 10, 400, 1200, 2).update.kernels, 90u);
  training.optimizer = OptimizerKernels::kForeach;
  EXPECT_EQ(CostsOfAdam(training, 100, 10, 400, 1200, 2).update.kernels, 9u);
  EXPECT_EQ(CostsOfAdam(training, 100, 31, 400, 1200, 2).update.kernels, 18u);
}

TEST(KernelCostsTest, LambGoesOverItsArraysThreeTimes) {
  // Gradients, master weights and moments in fp32, a bf16 parameter. Gradient 4, weight 4 and
  // moments 8 read, moments 8 and direction 4 written; weight 4 and direction 4 read; both read,
  // the weight 4 and the parameter 2 written.
  const LambCosts costs = CostsOfLamb({100, 400, 4, 2});
  EXPECT_EQ(costs.moments.bytes, 2800);
  EXPECT_EQ(costs.norms.bytes, 800);
  EXPECT_EQ(costs.step.bytes, 1400);
}

TEST(KernelCostsTest, FusedAccumulationLeavesTheProductToAddToTheSum) {
  Training training = Steps(KernelStyle::kFused);
  const auto apart = Kernels(Model(true), training);
  training.fused_accumulation = true;
  const auto fused = Kernels(Model(true), training);
  const double weights = kHidden * kHidden;
  EXPECT_EQ(apart.at("accumulate projection").bytes.value(), weights * (2 + 4 + 4));
  EXPECT_EQ(fused.at("accumulate projection").bytes.value(), 0);
  // Instead of 2 bytes of a block, it reads 4 and writes 4.
  EXPECT_EQ(fused.at("projection dW").bytes.value() - apart.at("projection dW").bytes.value(),
            weights * 6);
}

TEST(KernelCostsTest, RotaryEmbeddingTurnsQueriesAndKeysOnTheWayThereAndBack) {
  const auto kernels = Kernels(Model(true), Steps(KernelStyle::kFused));
  const double array = 2 * kTokens * 2 * kHidden;  // Q and K
  EXPECT_EQ(kernels.at("rotary").bytes.value(), 2 * array);
  EXPECT_EQ(kernels.at("rotary backward").bytes.value(), 2 * array);
  EXPECT_EQ(Kernels(Model(false), Steps(KernelStyle::kFused)).count("rotary"), 0u);
}

TEST(KernelCostsTest, ScaledRotaryEmbeddingsAreKernelsOfPyTorch) {
  const double elements = kTokens * 2 * kHidden;  // of Q and K
  GptModel model = Model(true);
  model.scaled_rotary = true;
  const auto kernels = Kernels(model, Steps(KernelStyle::kFused));
  // Both products (2 arrays each), a half turned (1), the join (2), the sum (3), and a join with
  // nothing (2); all but the last two kernels are strided.
  EXPECT_EQ(kernels.at("rotary").bytes.value(), 12 * 2 * elements);
  EXPECT_EQ(kernels.at("rotary").strided, 3.5 * elements);
  EXPECT_EQ(kernels.at("rotary").strided_bytes.value(), 7 * 2 * elements);
  EXPECT_EQ(kernels.at("rotary backward").bytes.value(), 22 * 2 * elements);
  // Where PyTorch's kernels are compiled or run anyway, the scale changes nothing.
  for (const KernelStyle style : {KernelStyle::kEager, KernelStyle::kCompiled}) {
    EXPECT_EQ(Kernels(model, Steps(style)).at("rotary").bytes,
              Kernels(Model(true), Steps(style)).at("rotary").bytes);
  }
}

// Milliseconds of Hugging Face's rotary embedding, of Q and K of 16,384 tokens with 10,240 columns
// (linkedin/Liger-Kernel, benchmark/rope_speed), and 8,192 with 4,608
// (all_benchmark_data_rope_models.csv, qwen3_30b_a3b). DeviceSpec::strided_element is the mean of
// what both directions leave, so this shows that one number stands for both.
TEST(KernelCostsTest, EagerRotaryEmbeddingsTakeAsLongAsMeasured) {
  struct Measured {
    const char* device;
    double elements;
    double forward;
    double backward;
  };
  const ElementwiseCosts costs = {.style = KernelStyle::kEager, .element = 2};
  for (const Measured& row : {Measured{"a100-80g", 16384.0 * 10240, 3.8, 4.5},
                              Measured{"h100", 16384.0 * 10240, 2.415, 2.980},
                              Measured{"b200", 8192.0 * 4608, 0.5438, 0.5478}}) {
    const auto milliseconds = [&](const KernelCost& cost) {
      Compute compute;
      compute.bytes = Bytes(cost.bytes);
      compute.kernels = 0;
      compute.strided = cost.strided;
      compute.strided_bytes = Bytes(cost.strided_bytes);
      return ComputeTime(FindDevice(row.device), compute, false).value() * 1e3;
    };
    EXPECT_NEAR(milliseconds(costs.Rotary(row.elements, false)) / row.forward, 1, 0.08)
        << row.device;
    EXPECT_NEAR(milliseconds(costs.RotaryBackward(row.elements, false)) / row.backward, 1, 0.08)
        << row.device;
  }
}

TEST(KernelCostsTest, ATableOfEmbeddingsIsFilledAndAddedAsAWhole) {
  Training training = Steps(KernelStyle::kFused);
  GptModel model = Model(true);
  model.tied = false;
  const double table = kVocabulary * kHidden;
  const double rows = kTokens * kHidden;
  const auto apart = Kernels(model, training);
  EXPECT_EQ(apart.at("embedding backward").bytes.value(), 2 * (3 * rows + table));
  // A product can add to the sum of gradients, a lookup cannot.
  training.fused_accumulation = true;
  const auto fused = Kernels(model, training);
  EXPECT_EQ(fused.at("accumulate embedding").bytes.value(), table * (2 + 4 + 4));
  EXPECT_EQ(fused.at("accumulate output").bytes.value(), 0);
  // Tied, the table's gradient is added to the one that the output layer began.
  EXPECT_EQ(Kernels(Model(true), Steps(KernelStyle::kFused)).at("embedding backward").bytes.value(),
            2 * (3 * rows + 4 * table));
}

TEST(KernelCostsTest, TheHostLaunchesAProductForEachExpert) {
  const auto launches = [](bool fused_experts) {
    Training training = Steps(KernelStyle::kFused);
    training.host_launch = Seconds(1);
    training.products = ProductRecipe::kMxfp8;
    training.fused_experts = fused_experts;
    const Network network = MakeDecoder(ExpertsModel(false), training);
    const Schedule schedule = PlanStep(network, training, MakeDataParallel(1, false, network));
    double seconds = 0;
    for (const Op& op : schedule.roles[0].ops) {
      if (op.name == "launches") seconds += std::get<Compute>(op.work).duration.value();
    }
    return seconds;
  };
  // 4 experts, 2 linears: products forward and of dX with their casts, products of dW; SwiGLU and
  // its gradient and the casts between are parts of products, too.
  EXPECT_GE(launches(false) - launches(true), 2 * 3 * (2 + 2 + 1));
}

TEST(KernelCostsTest, TheHostIsWaitedForWhereItLaunchesTooSlowly) {
  Training training = Steps(KernelStyle::kFused);
  training.host_launch = Seconds(5e-6);
  const Network network = MakeDecoder(Model(true), training);
  const Schedule schedule = PlanStep(network, training, MakeDataParallel(1, false, network));
  uint32_t launches = 0;
  uint32_t launched = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr) {
      ++launches;
    } else if (op.name == "launches") {
      EXPECT_TRUE(IsWait(*compute));
      // Everything since the last wait, so the sum of waits is that of all launches so far.
      launched += launches;
      EXPECT_NEAR(compute->duration.value(), 5e-6 * launches, 1e-12);
      launches = 0;
    } else {
      launches += compute->kernels;
    }
  }
  EXPECT_GT(launched, 20u);
}

}  // namespace kernel_costs_test
}  // namespace rehearse
