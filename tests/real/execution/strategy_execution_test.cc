// Every strategy on real numbers: one training step on thread ranks gives the loss, all gradients
// and the updated parameters of the serial step, whatever the network, the mesh and the layouts.
// Both begin with the same numbers.
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "real/execution/execute.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "tests/support/sanitizers.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/mlp_network.h"
#include "workloads/networks/unet_network.h"
#include "workloads/networks/vgg_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_sbp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace strategy_execution_test {

// Double has 16 digits; sums in another order and a few hundred operations cost at most six of
// them.
constexpr double kTolerance = 1e-10;
constexpr uint32_t kMostRanks = 16;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool Flip() { return Below(2) == 0; }
  uint32_t Pick(std::initializer_list<uint32_t> from) {
    return *(from.begin() + Below(static_cast<uint32_t>(from.size())));
  }
  // Sizes whose product is `total`.
  template <size_t kCount>
  std::array<uint32_t, kCount> Split(uint32_t total) {
    std::array<uint32_t, kCount> sizes;
    sizes.fill(1);
    for (uint32_t factor = 2; total > 1;) {
      if (total % factor != 0) {
        ++factor;
        continue;
      }
      sizes[Below(kCount)] *= factor;
      total /= factor;
    }
    return sizes;
  }
  uint32_t Ranks() { return Pick({2, 3, 4, 6, 8, 9, 12, 16}); }

 private:
  std::mt19937 random_;
};

// ---- networks -----------------------------------------------------------------------------------

struct Step {
  std::string name;
  Network network;
  Training training;
};

Step DecoderStep(const std::string& name, bool llama, Training training, uint64_t sequence = 4,
                 uint64_t window = 0) {
  GptModel model;
  model.name = name;
  model.layers = 2;
  model.hidden = 24;
  model.heads = 12;
  model.vocabulary = 48;
  model.window = window;
  if (llama) {
    model.llama = true;
    model.groups = 4;
    model.feed_forward = 48;
    model.tied = false;
  }
  training.sequence = sequence;
  return {name, MakeDecoder(model, training), training};
}

Step MlpStep(Training training) {
  return {"mlp", MakeMlp({"mlp", {36, 48, 24, 72, 12}}, training), training};
}

// Images of 4×4, pooled twice.
Step VggStep(Training training) {
  VggModel model;
  model.name = "vgg";
  model.stages = {{12, 12}, {24}};
  model.image = 4;
  model.hidden = 24;
  model.classes = 12;
  return {"vgg", MakeVgg(model, training), training};
}

// Two levels of one block, attention at 2×2.
Step UnetStep(Training training) {
  UnetModel model;
  model.name = "u-net";
  model.channels = 12;
  model.multipliers = {1, 2};
  model.blocks = 1;
  model.image = 4;
  model.attention = {2};
  model.head_size = 2;
  model.groups = 6;
  return {"u-net", MakeUnet(model, training), training};
}

Step DrawStep(Dice& dice) {
  Training training;
  training.micro_batches = 1 + dice.Below(2);
  training.batch = 12 * training.micro_batches;
  training.recomputation = static_cast<Recomputation>(dice.Below(3));
  const uint32_t kind = dice.Below(6);
  if (kind <= 2) {
    // Narrow products are executed as if nothing had been cast.
    constexpr ProductRecipe kRecipes[] = {ProductRecipe::kNone,       ProductRecipe::kNone,
                                          ProductRecipe::kFp8,        ProductRecipe::kMxfp8,
                                          ProductRecipe::kFp8Current, ProductRecipe::kNvfp4};
    training.products = kRecipes[dice.Below(6)];
    training.narrow_parameters = training.products != ProductRecipe::kNone && dice.Flip();
    training.precise_layers = dice.Below(2);
  }
  switch (kind) {
    case 0:
    case 1:
      return DecoderStep("gpt", false, training);
    case 2:
      return DecoderStep("llama", true, training);
    case 3:
      return MlpStep(training);
    case 4:
      return VggStep(training);
    default:
      return UnetStep(training);
  }
}

// ---- strategies ---------------------------------------------------------------------------------

Strategy DrawDataParallel(Dice& dice, const Step& step) {
  return MakeDataParallel(dice.Pick({2, 3, 4, 6, 12}), dice.Flip(), step.network);
}

ZeroOptions DrawSharing(Dice& dice, uint32_t stage) {
  ZeroOptions options;
  options.stage = stage;
  options.prefetch = dice.Below(3);
  options.reshard_after_forward = dice.Flip();
  options.overlap_reduce_scatter = dice.Flip();
  options.overlap_all_reduce = dice.Flip();
  options.by_layer = stage == 3 && dice.Flip();
  if (stage == 3) {
    options.copies = static_cast<ShardCopies>(dice.Below(4));
    options.reduces_in_fp32 = dice.Flip();
    options.within_layer = dice.Flip();
    options.gathers_behind_backward = options.by_layer && dice.Flip();
    if (!options.by_layer && dice.Flip()) {
      options.prefetch_elements = dice.Pick({100, 1000, 5000});
      options.most_gathered = dice.Pick({0, 500, 4000});
      options.reduce_elements = dice.Pick({0, 1000, 5000});
    }
  }
  return options;
}

Strategy DrawZero(Dice& dice, const Step& step, uint32_t stage) {
  const uint32_t shard = dice.Pick({2, 3, 4, 6});
  const uint32_t replicas = dice.Pick({1, 1, 2});
  ZeroOptions options = DrawSharing(dice, stage);
  options.shard = shard;
  options.replicas = replicas;
  return MakeZero(options, step.network);
}
Strategy DrawZero1(Dice& dice, const Step& step) { return DrawZero(dice, step, 1); }
Strategy DrawZero2(Dice& dice, const Step& step) { return DrawZero(dice, step, 2); }
Strategy DrawFsdp(Dice& dice, const Step& step) { return DrawZero(dice, step, 3); }

Strategy DrawMegatron(Dice& dice, const Step& step, bool sequence_parallel) {
  const auto [tensor, data] = dice.Split<2>(dice.Ranks());
  MegatronOptions options;
  options.tensor = tensor;
  options.data = data;
  options.sequence_parallel = sequence_parallel;
  options.overlap_all_reduce = dice.Flip();
  options.overlap_gradients = dice.Flip();
  options.distributed_optimizer = dice.Flip();
  options.overlap_parameter_gathers = dice.Flip();
  if (sequence_parallel) options.split_products = static_cast<SplitProducts>(dice.Below(4));
  Strategy strategy = MakeMegatron(options, step.network);
  strategy.bucket_elements = dice.Pick({0, 500, 3000});
  return strategy;
}
Strategy DrawTensorParallel(Dice& dice, const Step& step) {
  return DrawMegatron(dice, step, false);
}
Strategy DrawSequenceParallel(Dice& dice, const Step& step) {
  return DrawMegatron(dice, step, true);
}

std::vector<CombinedAxis> DrawOrder(Dice& dice) {
  std::vector<CombinedAxis> left = {CombinedAxis::kTensor, CombinedAxis::kContext,
                                    CombinedAxis::kShard, CombinedAxis::kReplicas,
                                    CombinedAxis::kData};
  std::vector<CombinedAxis> order;
  while (!left.empty() && dice.Below(4) != 0) {
    const auto at = left.begin() + dice.Below(static_cast<uint32_t>(left.size()));
    order.push_back(*at);
    left.erase(at);
  }
  return order;
}

void SplitTensor(Dice& dice, CombinedOptions* options) {
  options->sequence_parallel = dice.Flip();
  options->keeps_gathered = dice.Flip();
  options->overlap_all_reduce = dice.Flip();
  if (options->sequence_parallel)
    options->split_products = static_cast<SplitProducts>(dice.Below(4));
}

// Any stage of ZeRO under tensor parallelism, axes in any order.
Strategy DrawCombined(Dice& dice, const Step& step) {
  CombinedOptions options;
  options.zero = DrawSharing(dice, dice.Below(4));
  const auto [tensor, shard, replicas, data] = dice.Split<4>(dice.Ranks());
  options.tensor = tensor;
  options.zero.shard = shard;
  options.zero.replicas = replicas;
  options.data = data;
  options.order = DrawOrder(dice);
  SplitTensor(dice, &options);
  return MakeCombined(options, step.network);
}

// Ranks that share sequences, in any form and order, beside all other axes.
Strategy DrawContext(Dice& dice, const Step& step) {
  CombinedOptions options;
  options.zero = DrawSharing(dice, dice.Below(4));
  options.context = dice.Pick({2, 2, 3, 4});
  const auto [tensor, shard, data] = dice.Split<3>(dice.Pick({1, 2, 3, 4}));
  options.tensor = tensor;
  options.zero.shard = shard;
  options.data = data;
  options.context_kind = static_cast<ContextKind>(dice.Below(3));
  options.balances_context = dice.Below(3) != 0;
  options.order = DrawOrder(dice);
  SplitTensor(dice, &options);
  return MakeCombined(options, step.network);
}

Strategy DrawFourD(Dice& dice, const Step& step) {
  const auto [column, row, depth, data] = dice.Split<4>(dice.Ranks());
  FourDOptions options;
  options.column = column;
  options.row = row;
  options.depth = depth;
  options.data = data;
  options.transpose_alternate_layers = dice.Below(4) != 0;
  options.overlap_all_reduce = dice.Flip();
  options.overlap_reduce_scatter = dice.Flip();
  options.overlap_all_gather = dice.Flip();
  if (step.training.recomputation == Recomputation::kFull) options.cached_layers = dice.Below(3);
  return MakeFourD(options, step.network);
}

// Machines of several ranks; each product splits both independently.
Strategy DrawSbpNumbers(Dice& dice, const Step& step) {
  SbpOptions options;
  options.nodes = dice.Pick({1, 2, 3, 4});
  options.gpus = dice.Pick({1, 2, 3, 4});
  const bool all_alike = dice.Below(4) == 0;
  for (const NetworkMatrix& matrix : step.network.matrices) {
    if (matrix.tied) {
      options.products.push_back(Exchanged(options.products[*matrix.tied]));
    } else if (all_alike && !options.products.empty()) {
      options.products.push_back(options.products.front());
    } else {
      options.products.push_back({dice.Split<3>(options.nodes), dice.Split<3>(options.gpus)});
    }
  }
  options.overlap_all_reduce = dice.Flip();
  options.overlap_gradients = dice.Flip();
  return MakeSbp(options, step.network);
}

// Any layouts that multiply, and any resting layout. The ends of a network that cannot be split by
// columns are split by rows.
ProductLayouts DrawLayouts(Dice& dice, size_t axes, bool narrow) {
  constexpr std::pair<Placement, Placement> kOperands[] = {
      {S(0), B()}, {B(), B()}, {B(), S(1)}, {S(1), S(0)}};
  constexpr Placement kRests[] = {S(0), B(), S(1)};
  ProductLayouts product;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto& [x, w] = kOperands[dice.Below(narrow ? 2 : 4)];
    product.x.push_back(x);
    product.w.push_back(w);
    product.rest.push_back(kRests[dice.Below(narrow ? 2 : 3)]);
  }
  product.x = Nested(product.x);
  product.w = Nested(product.w);
  product.rest = dice.Flip() ? Layout() : Nested(product.rest);
  return product;
}

Strategy DrawSbpLayouts(Dice& dice, const Step& step) {
  std::vector<MeshAxis> axes;
  uint32_t ranks = 1;
  for (const char* name : {"a", "b", "c"}) {
    const uint32_t size = dice.Pick({2, 2, 3});
    if (ranks * size > kMostRanks) break;
    ranks *= size;
    axes.push_back({name, size});
    if (dice.Below(3) == 0) break;
  }
  // Deep networks have few different splits: with one for each product, none would fit.
  std::vector<ProductLayouts> ways;
  for (uint32_t i = 0; i < 3; ++i) ways.push_back(DrawLayouts(dice, axes.size(), false));
  const bool is_free = dice.Flip();
  std::vector<ProductLayouts> products;
  for (const NetworkMatrix& matrix : step.network.matrices) {
    const bool narrow = matrix.role == MatrixRole::kStem || matrix.role == MatrixRole::kTail;
    ProductLayouts product =
        is_free || narrow ? DrawLayouts(dice, axes.size(), narrow) : ways[dice.Below(3)];
    if (matrix.tied) {
      // W is the table's, transposed, and its gradient is summed in the same way.
      const ProductLayouts& table = products[*matrix.tied];
      product.w = Transposed(table.w);
      product.x = table.x;
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (IsSplit(table.w[axis])) product.x[axis] = IsSplit(table.w[axis], 1) ? S(1) : B();
      }
      product.x = Nested(product.x);
    }
    products.push_back(std::move(product));
  }
  return MakeSbp(DeviceMesh(axes), std::move(products), dice.Flip(), dice.Flip());
}

Strategy DrawAtp(Dice& dice, const Step& step) {
  const auto [d1, d2, data] = dice.Split<3>(dice.Ranks());
  AtpOptions options;
  options.d1 = d1;
  options.d2 = d2;
  options.data = data;
  options.column_first = dice.Flip();
  options.chunks = dice.Pick({1, 2, 3, 4});
  options.overlap_all_reduce = dice.Flip();
  return MakeAtp(options, step.network);
}

Strategy DrawSumma(Dice& dice, const Step& step) {
  SummaOptions options;
  options.q = dice.Pick({2, 2, 3, 4});
  options.depth = dice.Pick({1, 1, 2, 3});
  options.data = dice.Pick({1, 1, 2});
  options.overlap_panels = dice.Flip();
  return MakeSumma(options, step.network);
}

struct Row {
  const char* name;
  Strategy (*draw)(Dice& dice, const Step& step);
};

// ---- the test -----------------------------------------------------------------------------------

// The serial step of each network is computed once.
const StepNumbers& SerialNumbers(const Step& step, uint32_t chunks, uint64_t seed) {
  static std::map<std::string, StepNumbers> known;
  const std::string key = fmt::format("{} {} {} {} {}", step.name, step.training.micro_batches,
                                      static_cast<int>(step.training.recomputation), chunks, seed);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Schedule serial = PlanSerialStep(step.network, step.training, chunks);
  return known.emplace(key, ComputeSerially(serial, seed)).first->second;
}

// Nothing if the network cannot be split like that.
std::optional<Schedule> TryPlan(const Step& step, const Strategy& strategy) {
  try {
    return PlanStep(step.network, step.training, strategy);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string Describe(const Step& step, const Strategy& strategy) {
  std::string mesh;
  for (const MeshAxis& axis : strategy.mesh.axes()) {
    mesh += fmt::format(" {} {}", axis.name, axis.size);
  }
  std::string products;
  for (const ProductLayouts& product : strategy.products) {
    products += fmt::format("\n  x {} w {} rest {}", ToString(product.x), ToString(product.w),
                            ToString(product.rest));
  }
  return fmt::format("{}, {} micro-batches, recomputation {}: {} on{}{}", step.name,
                     step.training.micro_batches, static_cast<int>(step.training.recomputation),
                     strategy.name, mesh, products);
}

void ExpectSerialNumbers(const Step& step, const Strategy& strategy, const Schedule& schedule,
                         uint64_t seed) {
  SCOPED_TRACE(Describe(step, strategy));
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  const CheckReport report =
      ExecuteAndCompare(SerialNumbers(step, strategy.chunks, seed), schedule, seed);
  EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
}

class StrategyExecutionTest : public ::testing::TestWithParam<Row> {};

TEST_P(StrategyExecutionTest, GivesTheSerialNumbers) {
  constexpr int kCases = 28;
  constexpr uint64_t kSeed = 11;
  std::map<std::string, int> executed;
  int cases = 0;
  for (uint32_t draw = 0; cases < kCases && draw < 40 * kCases; ++draw) {
    Dice dice(draw);
    const Step step = DrawStep(dice);
    const Strategy strategy = GetParam().draw(dice, step);
    if (strategy.mesh.size() > kMostRanks) continue;
    const auto schedule = TryPlan(step, strategy);
    if (!schedule) continue;
    ExpectSerialNumbers(step, strategy, *schedule, kSeed);
    ++executed[step.name];
    ++cases;
  }
  EXPECT_EQ(cases, kCases);
  EXPECT_EQ(executed.size(), 5u) << "networks that this strategy was drawn for";
}

INSTANTIATE_TEST_SUITE_P(
    All, StrategyExecutionTest,
    ::testing::Values(Row{"DataParallel", DrawDataParallel}, Row{"Zero1", DrawZero1},
                      Row{"Zero2", DrawZero2}, Row{"Fsdp", DrawFsdp},
                      Row{"Megatron", DrawTensorParallel},
                      Row{"SequenceParallel", DrawSequenceParallel}, Row{"FourD", DrawFourD},
                      Row{"Combined", DrawCombined}, Row{"SbpByNumbers", DrawSbpNumbers},
                      Row{"SbpByLayouts", DrawSbpLayouts}, Row{"Atp", DrawAtp},
                      Row{"Summa", DrawSumma}),
    [](const ::testing::TestParamInfo<Row>& row) { return std::string(row.param.name); });

// Attention over more tokens, with and without windows.
Step DrawLongStep(Dice& dice) {
  Training training;
  training.micro_batches = 1 + dice.Below(2);
  training.batch = dice.Pick({4, 12}) * training.micro_batches;
  training.recomputation = static_cast<Recomputation>(dice.Below(3));
  const bool llama = dice.Flip();
  const uint64_t window = dice.Pick({0, 0, 1, 5, 11, 30});
  const std::string name =
      fmt::format("{} of {}, window {}", llama ? "llama" : "gpt", training.batch, window);
  return DecoderStep(name, llama, training, 24, window);
}

TEST(ContextExecutionTest, RanksThatShareSequencesGiveTheSerialNumbers) {
  constexpr int kCases = kIsSanitized ? 30 : 90;
  std::map<std::string, int> forms;
  int cases = 0;
  for (uint32_t draw = 0; cases < kCases && draw < 40 * kCases; ++draw) {
    Dice dice(draw);
    const Step step = DrawLongStep(dice);
    const Strategy strategy = DrawContext(dice, step);
    if (strategy.mesh.size() > kMostRanks) continue;
    const auto schedule = TryPlan(step, strategy);
    if (!schedule) continue;
    ExpectSerialNumbers(step, strategy, *schedule, 7);
    ++forms[fmt::format("{} {}", static_cast<int>(strategy.context->kind),
                        strategy.context->balanced)];
    ++cases;
  }
  EXPECT_EQ(cases, kCases);
  EXPECT_EQ(forms.size(), 5u) << "forms: ring and all-gather in both orders, Ulysses";
}

// ---- latent attention ---------------------------------------------------------------------------

// Values narrower than queries and keys; queries from a short vector or from the token.
Step LatentStep(Training training, uint64_t query_rank, uint64_t window, uint32_t ahead = 0) {
  GptModel model;
  model.name = fmt::format("latent {}, {}, {} ahead", query_rank, window, ahead);
  model.predict_ahead = ahead;
  model.layers = 2;
  model.hidden = 24;
  model.heads = 12;
  model.vocabulary = 48;
  model.window = window;
  model.llama = true;
  model.feed_forward = 48;
  model.tied = false;
  model.latent = LatentAttention{query_rank, 6, 2, 4, 3};
  training.sequence = 4;
  return {model.name, MakeDecoder(model, training), training};
}

class LatentExecutionTest : public ::testing::TestWithParam<Row> {};

TEST_P(LatentExecutionTest, GivesTheSerialNumbers) {
  constexpr int kCases = 8;
  int cases = 0;
  for (uint32_t draw = 0; cases < kCases && draw < 80 * kCases; ++draw) {
    Dice dice(draw);
    Training training;
    training.micro_batches = 1 + dice.Below(2);
    training.batch = 12 * training.micro_batches;
    training.recomputation = static_cast<Recomputation>(dice.Below(3));
    const Step step = LatentStep(training, dice.Pick({0, 8}), dice.Pick({0, 3}), dice.Below(2));
    const Strategy strategy = GetParam().draw(dice, step);
    if (strategy.mesh.size() > kMostRanks) continue;
    const auto schedule = TryPlan(step, strategy);
    if (!schedule) continue;
    ExpectSerialNumbers(step, strategy, *schedule, 5);
    ++cases;
  }
  EXPECT_EQ(cases, kCases);
}

INSTANTIATE_TEST_SUITE_P(
    All, LatentExecutionTest,
    ::testing::Values(Row{"DataParallel", DrawDataParallel}, Row{"Fsdp", DrawFsdp},
                      Row{"Megatron", DrawTensorParallel},
                      Row{"SequenceParallel", DrawSequenceParallel}, Row{"FourD", DrawFourD},
                      Row{"Combined", DrawCombined}, Row{"SbpByNumbers", DrawSbpNumbers},
                      Row{"SbpByLayouts", DrawSbpLayouts}, Row{"Atp", DrawAtp},
                      Row{"Summa", DrawSumma}),
    [](const ::testing::TestParamInfo<Row>& row) { return std::string(row.param.name); });

TEST(LatentExecutionEdgeTest, SequencesOfLatentAttentionAreNotShared) {
  Training training;
  training.batch = 4;
  const Step step = LatentStep(training, 8, 0);
  CombinedOptions options;
  options.context = 2;
  try {
    PlanStep(step.network, training, MakeCombined(options, step.network));
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("latent attention"), std::string::npos);
  }
}

TEST(StrategyExecutionEdgeTest, SlidingWindowsGiveTheSerialNumbersUnderEveryAxis) {
  Training training;
  training.batch = 4;
  for (const uint64_t window : {1u, 3u, 7u}) {
    const Step step = DecoderStep(fmt::format("window {}", window), true, training, 8, window);
    FourDOptions options;
    options.column = 2;
    options.row = 2;
    options.depth = 2;
    const Strategy strategy = MakeFourD(options, step.network);
    ExpectSerialNumbers(step, strategy, PlanStep(step.network, training, strategy), 3);
  }
}

TEST(StrategyExecutionEdgeTest, SharesThatDoNotDivideArePadded) {
  // 24·24·3 = 1728 elements over 5 ranks: four shares of 346 and one of 344.
  Training training;
  training.batch = 5;
  const Step step = DecoderStep("gpt of 5", false, training);
  ZeroOptions options;
  options.shard = 5;
  const Strategy strategy = MakeZero(options, step.network);
  ExpectSerialNumbers(step, strategy, PlanStep(step.network, training, strategy), 3);
}

TEST(StrategyExecutionEdgeTest, AWholeLayerOfPaddedSharesIsGatheredAtOnce) {
  // 5 ranks divide none of the four matrices of a layer; each matrix has its own padding in the
  // group.
  Training training;
  training.batch = 10;
  training.micro_batches = 2;
  training.recomputation = Recomputation::kFull;
  const Step step = DecoderStep("gpt of 5 by layers", false, training);
  ZeroOptions options;
  options.shard = 5;
  options.by_layer = true;
  const Strategy strategy = MakeZero(options, step.network);
  ExpectSerialNumbers(step, strategy, PlanStep(step.network, training, strategy), 3);
}

TEST(StrategyExecutionEdgeTest, GathersOfTheStepBeforeLeaveSharesUpdated) {
  // Two buckets of at least 2,000 elements of a layer's 24·24·12 / 2, and those of the table.
  Training training;
  training.batch = 12;
  training.micro_batches = 3;
  for (const bool overlaps : {false, true}) {
    const Step step = DecoderStep("gpt in buckets", false, training);
    MegatronOptions options{.tensor = 2, .data = 2};
    options.overlap_gradients = overlaps;
    options.distributed_optimizer = true;
    options.overlap_parameter_gathers = true;
    Strategy strategy = MakeMegatron(options, step.network);
    strategy.bucket_elements = 2000;
    ExpectSerialNumbers(step, strategy, PlanStep(step.network, training, strategy), 3);
  }
}

TEST(StrategyExecutionEdgeTest, WindowsThatAreWrittenDownGiveTheSameNumbers) {
  Training training;
  training.batch = 12;
  training.implicit_convolution = false;
  const Step step = VggStep(training);
  FourDOptions options;
  options.column = 2;
  options.row = 2;
  options.depth = 3;
  const Strategy strategy = MakeFourD(options, step.network);
  ExpectSerialNumbers(step, strategy, PlanStep(step.network, training, strategy), 3);
}

}  // namespace strategy_execution_test
}  // namespace rehearse
