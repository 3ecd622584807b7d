// Bytes of every collective against the papers' formulas, with the numbers derived. 4D's own are in
// strategy_4d_test.cc.
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_sbp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace strategy_bytes_test {

using ::testing::ElementsAre;

constexpr double kHidden = 96;
constexpr double kRows = 16.0 * 8;  // tokens
constexpr double kLayers = 2;
constexpr double kBf16 = 2;
constexpr double kFp32 = 4;

GptModel SmallModel() {
  GptModel model;
  model.name = "small";
  model.layers = 2;
  model.hidden = 96;
  model.heads = 8;
  model.vocabulary = 192;
  return model;
}

Training SmallTraining(Recomputation recomputation = Recomputation::kNone) {
  Training training;
  training.batch = 16;
  training.sequence = 8;
  training.recomputation = recomputation;
  return training;
}

// Bytes of the layers' collectives that are not statistics, by "KIND on AXIS in PHASE".
std::map<std::string, double> LayerBytes(const Schedule& schedule) {
  std::map<std::string, double> bytes;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || op.tag.layer < 0) continue;
    if (op.name.find("statistics") != std::string::npos) continue;
    const std::string axis = schedule.communicators[collective->communicator.index()].name();
    bytes[fmt::format("{} on {} in {}", Name(collective->kind), axis, Name(op.tag.phase))] +=
        collective->bytes.value();
  }
  return bytes;
}

using Bytes4 = std::map<std::string, double>;

TEST(StrategyBytesTest, MegatronAllReducesTwoActivationsAWay) {
  // 2·mh forward and 2·mh backward per layer; gradients 12h²/t (fp32) over data; m is a replica's.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const Schedule schedule =
      PlanStep(network, SmallTraining(), MakeMegatron({.tensor = 4, .data = 2}, network));
  const double mh = kRows / 2 * kHidden;
  EXPECT_EQ(LayerBytes(schedule),
            (Bytes4{{"all-reduce on tensor in forward", kLayers * 2 * mh * kBf16},
                    {"all-reduce on tensor in backward", kLayers * 2 * mh * kBf16},
                    {"all-reduce on data in synchronize",
                     kLayers * 12 * kHidden * kHidden / 4 * kFp32}}));
}

TEST(StrategyBytesTest, SequenceParallelismTurnsEachAllReduceIntoTwoHalves) {
  // Forward: gather X twice, reduce-scatter Y twice. Backward: gather dY twice, reduce-scatter dX
  // twice, and gather X twice more for dW, because only its shard is kept.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  MegatronOptions options{.tensor = 4, .data = 1};
  options.sequence_parallel = true;
  const Schedule schedule = PlanStep(network, SmallTraining(), MakeMegatron(options, network));
  const double mh = kRows * kHidden * kLayers * kBf16;
  EXPECT_EQ(LayerBytes(schedule), (Bytes4{{"all-gather on tensor in forward", 2 * mh},
                                          {"reduce-scatter on tensor in forward", 2 * mh},
                                          {"all-gather on tensor in backward", 4 * mh},
                                          {"reduce-scatter on tensor in backward", 2 * mh}}));
}

TEST(StrategyBytesTest, ProductsInPiecesMoveTheSameRowsInSteps) {
  // What is gathered for a product comes in t - 1 steps, each of a t-th of it, and so go partial
  // sums that are cut by rows; those cut by columns are reduce-scattered. What is gathered for dW,
  // and the sums of dX, are as without pieces.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const double mh = kRows * kHidden * kLayers * kBf16;
  for (const SplitProducts split :
       {SplitProducts::kUserBuffers, SplitProducts::kAsyncTp, SplitProducts::kTiles}) {
    MegatronOptions options{.tensor = 4, .data = 1};
    options.sequence_parallel = true;
    options.split_products = split;
    const bool by_columns = split == SplitProducts::kUserBuffers;
    Bytes4 expected = {{"send-receive on tensor in forward", (by_columns ? 2 : 4) * mh * 3 / 4},
                       {"send-receive on tensor in backward", 2 * mh * 3 / 4},
                       {"all-gather on tensor in backward", 2 * mh},
                       {"reduce-scatter on tensor in backward", 2 * mh}};
    if (by_columns) expected["reduce-scatter on tensor in forward"] = 2 * mh;
    EXPECT_EQ(LayerBytes(PlanStep(network, SmallTraining(), MakeMegatron(options, network))),
              expected);
  }
}

TEST(StrategyBytesTest, ProductsInPiecesComputeTheSame) {
  // As many flops of products, op by op; pieces are of a fourth of the rows or columns.
  const Network network = MakeDecoder(SmallModel(), SmallTraining(Recomputation::kFull));
  const auto flops = [&](SplitProducts split, std::map<std::string, uint32_t>* counts) {
    MegatronOptions options{.tensor = 4, .data = 1};
    options.sequence_parallel = true;
    options.split_products = split;
    std::map<std::string, double> sums;
    const Training training = SmallTraining(Recomputation::kFull);
    const Schedule schedule = PlanStep(network, training, MakeMegatron(options, network));
    for (const Op& op : schedule.roles[0].ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kind != ComputeKind::kGemm) continue;
      sums[fmt::format("{} {}", Name(op.tag.phase), op.name)] += compute->flops.value();
      ++(*counts)[fmt::format("{} {}", Name(op.tag.phase), op.name)];
    }
    return sums;
  };
  std::map<std::string, uint32_t> whole;
  const auto expected = flops(SplitProducts::kNone, &whole);
  for (const SplitProducts split :
       {SplitProducts::kUserBuffers, SplitProducts::kAsyncTp, SplitProducts::kTiles}) {
    std::map<std::string, uint32_t> counts;
    EXPECT_EQ(flops(split, &counts), expected);
    for (const char* in_pieces : {"forward qkv", "forward projection", "recompute up",
                                  "recompute down", "backward projection dX", "backward down dX"}) {
      ASSERT_GT(whole[in_pieces], 0u) << in_pieces;
      EXPECT_EQ(counts[in_pieces], 4 * whole[in_pieces]) << in_pieces;
    }
    for (const char* alone : {"backward qkv dX", "backward up dX", "backward projection dW"}) {
      ASSERT_GT(whole[alone], 0u) << alone;
      EXPECT_EQ(counts[alone], whole[alone]) << alone;
    }
    const uint32_t of_head = split == SplitProducts::kUserBuffers ? 1 : 4;
    EXPECT_EQ(counts["forward output"], of_head * whole["forward output"]);
  }
}

TEST(StrategyBytesTest, AttentionBesideTheMlpSharesItsSums) {
  // What both add is summed once; with one norm, so is the gradient that both pass back, and with
  // sequence parallelism what they take is gathered once: forward, and again for dW. Two norms have
  // two arrays to gather and two gradients. dY, of one sum, is gathered once.
  GptModel model = SmallModel();
  const double mh = kRows * kHidden * kLayers * kBf16;
  for (const bool llama : {false, true}) {
    model.llama = llama;
    for (const ParallelBlocks parallel : {ParallelBlocks::kOneNorm, ParallelBlocks::kTwoNorms}) {
      model.parallel = parallel;
      const double norms = parallel == ParallelBlocks::kOneNorm ? 1 : 2;
      const Network network = MakeDecoder(model, SmallTraining());
      const auto bytes = [&](bool sequence_parallel) {
        MegatronOptions options{.tensor = 4, .data = 1};
        options.sequence_parallel = sequence_parallel;
        return LayerBytes(PlanStep(network, SmallTraining(), MakeMegatron(options, network)));
      };
      EXPECT_EQ(bytes(false), (Bytes4{{"all-reduce on tensor in forward", mh},
                                      {"all-reduce on tensor in backward", norms * mh}}));
      EXPECT_EQ(bytes(true), (Bytes4{{"all-gather on tensor in forward", norms * mh},
                                     {"reduce-scatter on tensor in forward", mh},
                                     {"all-gather on tensor in backward", (1 + norms) * mh},
                                     {"reduce-scatter on tensor in backward", norms * mh}}));
    }
  }
}

TEST(StrategyBytesTest, AttentionBesideTheMlpSharesItsSumsIn4D) {
  // On 2x2: QKV and MLP-up sum 3h and 4h columns over rows, the two projections h each over
  // columns, or h for both. Backward, QKV and MLP-up sum h each over columns, or h for both, the
  // projections h and 4h over rows.
  GptModel model = SmallModel();
  const double mh = kRows * kHidden * kLayers * kBf16 / 2;
  for (const ParallelBlocks parallel : {ParallelBlocks::kNone, ParallelBlocks::kOneNorm}) {
    model.parallel = parallel;
    const double sums = parallel == ParallelBlocks::kNone ? 2 : 1;
    const Network network = MakeDecoder(model, SmallTraining());
    const Strategy strategy =
        MakeFourD({.column = 2, .row = 2, .transpose_alternate_layers = true}, network);
    Bytes4 bytes = LayerBytes(PlanStep(network, SmallTraining(), strategy));
    EXPECT_EQ(bytes["all-reduce on row in forward"], 7 * mh);
    EXPECT_EQ(bytes["all-reduce on column in forward"], sums * mh);
    EXPECT_EQ(bytes["all-reduce on column in backward"], sums * mh);
    EXPECT_EQ(bytes["all-reduce on row in backward"], 5 * mh);
  }
}

TEST(StrategyBytesTest, EightBitProductsGatherTheirOperandsAndParametersInEightBits) {
  // As above, but what is gathered is cast before: half the bytes; sums stay in bf16. Parameters of
  // layers are gathered in 8 bits where they are kept so.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  MegatronOptions options{.tensor = 4, .data = 2};
  options.sequence_parallel = true;
  options.distributed_optimizer = true;
  Training training = SmallTraining();
  training.products = ProductRecipe::kFp8;
  const double mh = kRows / 2 * kHidden * kLayers * kBf16;
  const double weights = kLayers * 12 * kHidden * kHidden / 4;
  for (const bool narrow : {false, true}) {
    training.narrow_parameters = narrow;
    Bytes4 bytes = LayerBytes(PlanStep(network, training, MakeMegatron(options, network)));
    EXPECT_EQ(bytes["all-gather on tensor in forward"], mh);
    EXPECT_EQ(bytes["reduce-scatter on tensor in forward"], 2 * mh);
    EXPECT_EQ(bytes["all-gather on tensor in backward"], 2 * mh);
    EXPECT_EQ(bytes["reduce-scatter on tensor in backward"], 2 * mh);
    EXPECT_EQ(bytes["reduce-scatter on data in synchronize"], weights * kFp32);
    EXPECT_EQ(bytes["all-gather on data in update"], weights * (narrow ? 1 : kBf16));
  }
}

TEST(StrategyBytesTest, BucketsMoveTheSameBytesInFewerCollectives) {
  // Gradients of 2 layers of 12h²/4 elements each, gathers of what the preceding step has updated.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  MegatronOptions options{.tensor = 4, .data = 2};
  options.overlap_gradients = true;
  options.distributed_optimizer = true;
  const auto collectives = [&](const Strategy& strategy, CollectiveKind kind, double* bytes) {
    const Schedule schedule = PlanStep(network, SmallTraining(), strategy);
    int count = 0;
    *bytes = 0;
    for (const Op& op : schedule.roles.front().ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || collective->kind != kind) continue;
      if (schedule.communicators[collective->communicator.index()].name() != "data") continue;
      ++count;
      *bytes += collective->bytes.value();
    }
    return count;
  };
  Strategy alone = MakeMegatron(options, network);
  Strategy together = alone;
  together.bucket_elements = 7 * kHidden * kHidden / 4;  // QKV and projection are 4 of 12 h²
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    double bytes_alone = 0;
    double bytes_together = 0;
    const int count_alone = collectives(alone, kind, &bytes_alone);
    const int count_together = collectives(together, kind, &bytes_together);
    EXPECT_EQ(bytes_alone, bytes_together);
    EXPECT_LT(count_together, count_alone);
    EXPECT_GT(count_together, 1);
  }
  together.gathers_beside_forward = true;
  double bytes = 0;
  double bytes_alone = 0;
  collectives(alone, CollectiveKind::kAllGather, &bytes_alone);
  collectives(together, CollectiveKind::kAllGather, &bytes);
  EXPECT_EQ(bytes, bytes_alone);
}

TEST(StrategyBytesTest, ZeroMovesParametersAndGradientsAsItsStageSays) {
  const double weights = kLayers * 12 * kHidden * kHidden;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto bytes = [&](uint32_t stage, bool reshard) {
    ZeroOptions options{.shard = 4, .replicas = 2, .stage = stage};
    options.reshard_after_forward = reshard;
    return LayerBytes(PlanStep(network, SmallTraining(), MakeZero(options, network)));
  };
  // The main gradients (fp32) of stage 1 are whole, those of stages 2 and 3 are shards; of any
  // replicas sum shards.
  EXPECT_EQ(bytes(1, false), (Bytes4{{"all-reduce on replica in synchronize", weights / 4 * kFp32},
                                     {"reduce-scatter on shard in synchronize", weights * kFp32},
                                     {"all-gather on shard in update", weights * kBf16}}));
  EXPECT_EQ(bytes(2, false), (Bytes4{{"reduce-scatter on shard in backward", weights * kBf16},
                                     {"all-reduce on replica in synchronize", weights / 4 * kFp32},
                                     {"all-gather on shard in update", weights * kBf16}}));
  Bytes4 fsdp = {{"all-gather on shard in forward", weights * kBf16},
                 {"reduce-scatter on shard in backward", weights * kBf16},
                 {"all-reduce on replica in synchronize", weights / 4 * kFp32}};
  EXPECT_EQ(bytes(3, false), fsdp);
  fsdp["all-gather on shard in backward"] = weights * kBf16;
  EXPECT_EQ(bytes(3, true), fsdp);
}

TEST(StrategyBytesTest, Zero1sSumsRunBesideTheBackwardPassWhereTheyMay) {
  // The same bytes as after it.
  const double weights = kLayers * 12 * kHidden * kHidden;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  ZeroOptions options{.shard = 4, .replicas = 2, .stage = 1};
  options.overlap_all_reduce = true;
  EXPECT_EQ(LayerBytes(PlanStep(network, SmallTraining(), MakeZero(options, network))),
            (Bytes4{{"all-reduce on replica in backward", weights / 4 * kFp32},
                    {"reduce-scatter on shard in backward", weights * kFp32},
                    {"all-gather on shard in update", weights * kBf16}}));
}

TEST(StrategyBytesTest, FsdpUnderTensorParallelismMovesATthOfTheWeights) {
  // t = 2 tensor ranks with sequence parallelism, 4 shards, 2 replicas; m is a group's rows.
  const double weights = kLayers * 12 * kHidden * kHidden / 2;
  const double mh = kRows / 8 * kHidden * kLayers * kBf16;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  CombinedOptions options;
  options.tensor = 2;
  options.zero.shard = 4;
  options.zero.replicas = 2;
  options.sequence_parallel = true;
  Bytes4 expected = {{"all-gather on tensor in forward", 2 * mh},
                     {"reduce-scatter on tensor in forward", 2 * mh},
                     {"all-gather on tensor in backward", 4 * mh},
                     {"reduce-scatter on tensor in backward", 2 * mh},
                     {"all-gather on shard in forward", weights * kBf16},
                     {"all-gather on shard in backward", weights * kBf16},
                     {"reduce-scatter on shard in backward", weights * kBf16},
                     {"all-reduce on replica in synchronize", weights / 4 * kFp32}};
  EXPECT_EQ(LayerBytes(PlanStep(network, SmallTraining(), MakeCombined(options, network))),
            expected);
  // What was gathered forward is kept: dY is still gathered for both products of a pair.
  options.keeps_gathered = true;
  expected["all-gather on tensor in backward"] = 2 * mh;
  EXPECT_EQ(LayerBytes(PlanStep(network, SmallTraining(), MakeCombined(options, network))),
            expected);
}

// Llama's layers: keys and values have a fourth of the queries' columns.
Network SharedNetwork() {
  GptModel model = SmallModel();
  model.llama = true;
  model.groups = 2;
  model.feed_forward = 256;
  model.tied = false;
  return MakeDecoder(model, SmallTraining());
}

TEST(StrategyBytesTest, ContextParallelismMovesKeysAndValuesOfItsForm) {
  // c = 4 ranks share each sequence, 2 split the batch; m is a rank's rows. Columns: 2h/4 of k and
  // v, h + 2h/4 of all three.
  const double m = kRows / 8;
  const double keys = m * kHidden / 2 * kLayers * kBf16;
  const Network network = SharedNetwork();
  const auto bytes = [&](ContextKind kind) {
    CombinedOptions options;
    options.context = 4;
    options.data = 2;
    options.context_kind = kind;
    options.zero.stage = 0;
    Bytes4 found = LayerBytes(PlanStep(network, SmallTraining(), MakeCombined(options, network)));
    found.erase("all-reduce on data+context in synchronize");
    return found;
  };
  // Three steps forward, three of keys and four of their gradients backward, each to the next rank.
  EXPECT_EQ(bytes(ContextKind::kRing),
            (Bytes4{{"send-receive on context in forward", 3 * keys},
                    {"send-receive on context in backward", (3 + 4) * keys}}));
  // The gathered array, twice, and what is reduce-scattered.
  EXPECT_EQ(bytes(ContextKind::kAllGather),
            (Bytes4{{"all-gather on context in forward", 4 * keys},
                    {"all-gather on context in backward", 4 * keys},
                    {"reduce-scatter on context in backward", 4 * keys}}));
}

TEST(StrategyBytesTest, UlyssesExchangesHeadsForTokens) {
  // Two of q, k, v and two of the result each way, of a rank's rows.
  const Network network = SharedNetwork();
  CombinedOptions options;
  options.context = 2;
  options.data = 4;
  options.context_kind = ContextKind::kUlysses;
  options.zero.stage = 0;
  const double columns = (kHidden + kHidden / 2) + kHidden;
  const double exchanged = kRows / 8 * columns * kLayers * kBf16;
  Bytes4 found = LayerBytes(PlanStep(network, SmallTraining(), MakeCombined(options, network)));
  found.erase("all-reduce on data+context in synchronize");
  EXPECT_EQ(found, (Bytes4{{"all-to-all on context in forward", exchanged},
                           {"all-to-all on context in backward", exchanged}}));
}

TEST(StrategyBytesTest, SharesLieOverContextToo) {
  // Ranks that share a sequence have equal weights: 2·4 shards of each.
  const Network network = SharedNetwork();
  CombinedOptions options;
  options.context = 4;
  options.zero.shard = 2;
  const Schedule schedule = PlanStep(network, SmallTraining(), MakeCombined(options, network));
  double weights = 0;
  for (const NetworkMatrix& matrix : network.matrices) {
    if (matrix.layer >= 0) weights += static_cast<double>(matrix.k * matrix.n);
  }
  const Bytes4 found = LayerBytes(schedule);
  EXPECT_EQ(found.at("all-gather on shard+context in forward"), weights * kBf16);
  EXPECT_EQ(found.at("reduce-scatter on shard+context in backward"), weights * kBf16);
}

TEST(ContextFlopsTest, RanksThatShareASequenceDoItsWorkTogether) {
  // Forward flops of attention over all ranks are those of one, in every balanced form.
  const auto attention = [&](uint32_t context, ContextKind kind, bool balanced, uint64_t window) {
    GptModel model = SmallModel();
    model.window = window;
    Training training = SmallTraining();
    training.sequence = 64;
    const Network network = MakeDecoder(model, training);
    CombinedOptions options;
    options.context = context;
    options.context_kind = kind;
    options.balances_context = balanced;
    options.zero.stage = 0;
    const Schedule schedule = PlanStep(network, training, MakeCombined(options, network));
    double flops = 0;
    for (const Op& op : schedule.roles[0].ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute != nullptr && compute->kind == ComputeKind::kAttention)
        flops += compute->flops.value();
    }
    return flops * schedule.ranks();
  };
  const double serial = attention(1, ContextKind::kRing, true, 0);
  // 4·s²/2·h per sequence and layer, and 2.5 times that backward.
  EXPECT_DOUBLE_EQ(serial, 3.5 * 2 * 64 * 64 * kHidden * 16 * kLayers);
  for (const ContextKind kind :
       {ContextKind::kRing, ContextKind::kAllGather, ContextKind::kUlysses}) {
    for (const uint32_t ranks : {2u, 4u, 8u}) {
      EXPECT_DOUBLE_EQ(attention(ranks, kind, true, 0), serial);
      EXPECT_LE(attention(ranks, kind, true, 16), serial);
    }
  }
  // In contiguous order the last rank has most to do, and the others wait: in a ring, c squares of
  // which half of one is masked, instead of c/2.
  EXPECT_DOUBLE_EQ(attention(4, ContextKind::kRing, false, 0), serial * 3.5 / 2);
  // A window of w out of s tokens leaves (w·s - w²/2) of s²/2.
  EXPECT_DOUBLE_EQ(attention(1, ContextKind::kRing, true, 16),
                   serial * (16.0 * 64 - 16 * 16 / 2) / (64 * 64 / 2));
}

// Bytes that kernels of the layers move, by name.
std::map<std::string, double> CopiesOfLayers(const Schedule& schedule) {
  std::map<std::string, double> bytes;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || op.tag.layer < 0 || op.name.find("pack") == std::string::npos)
      continue;
    bytes[op.name.substr(
        0, op.name.find(op.name.find("gradient") == std::string::npos ? " " : " of"))] +=
        compute->bytes.value();
  }
  return bytes;
}

TEST(StrategyBytesTest, FsdpCopiesAsItsBuffersWant) {
  // For w weights, gathered twice in shards of a fourth, reduce-scattered once.
  const double w = kLayers * 12 * kHidden * kHidden;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto copies = [&](ShardCopies kind, bool fp32) {
    ZeroOptions options{.shard = 4, .replicas = 1};
    options.by_layer = kind != ShardCopies::kBuckets;
    options.copies = kind;
    options.reduces_in_fp32 = fp32;
    return CopiesOfLayers(PlanStep(network, SmallTraining(), MakeZero(options, network)));
  };
  EXPECT_EQ(copies(ShardCopies::kNone, false), Bytes4());
  // Shards are cast from fp32 (4 + 2); gradients of views are joined (2 + 2), and cast to fp32.
  EXPECT_EQ(copies(ShardCopies::kFlat, false),
            (Bytes4{{"pack", 2 * w / 4 * 6}, {"pack gradient", w * 4}}));
  EXPECT_EQ(copies(ShardCopies::kFlat, true),
            (Bytes4{{"pack", 2 * w / 4 * 6}, {"pack gradient", w * (4 + 6)}}));
  // Shards are copied once more (2 + 2), what is gathered is copied out, gradients in and cast.
  EXPECT_EQ(
      copies(ShardCopies::kPerParameter, true),
      (Bytes4{{"pack", 2 * w / 4 * 10}, {"unpack", 2 * w * 4}, {"pack gradient", w * (2 + 4)}}));
  // What is gathered is joined; gradients into the bucket and into the order of partitions.
  EXPECT_EQ(copies(ShardCopies::kBuckets, false),
            (Bytes4{{"unpack", 2 * w * 4}, {"pack gradient", w * 8}}));
}

TEST(StrategyBytesTest, PostIsBehindTheKernelsOfALayerAndBeforeItsReduceScatter) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto orders = [&](bool post) {
    ZeroOptions options{.shard = 4, .replicas = 1};
    options.by_layer = true;
    options.gathers_behind_backward = post;
    const Schedule schedule = PlanStep(network, SmallTraining(), MakeZero(options, network));
    // Backward of layer 1: where its kernels begin, where layer 0 is gathered and 1 reduced.
    std::map<std::string, size_t> places;
    const std::vector<Op>& ops = schedule.roles[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].tag.phase != Phase::kBackward || ops[i].tag.layer < 0) continue;
      places.emplace(fmt::format("{} of {}", ops[i].name, ops[i].tag.layer), i);
    }
    return places;
  };
  const auto pre = orders(false);
  EXPECT_LT(pre.at("all-gather layer of 0"), pre.at("down dX of 1"));
  const auto post = orders(true);
  EXPECT_GT(post.at("all-gather layer of 0"), post.at("qkv dW of 1"));
  EXPECT_LT(post.at("all-gather layer of 0"), post.at("reduce-scatter layer of 1"));
}

// Layers that are not computed again are gathered on the way back as if none were; those that are,
// as if all were.
TEST(StrategyBytesTest, GathersGoByWhatIsComputedAgain) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto names = [&](const Strategy& strategy, Recomputation recomputation, uint32_t layers) {
    Training training = SmallTraining(recomputation);
    training.recomputed_layers = {layers};
    std::vector<std::string> result;
    const Schedule schedule = PlanStep(network, training, strategy);
    for (const Op& op : schedule.roles[0].ops)
      result.push_back(fmt::format("{} of {}", op.name, op.tag.layer));
    return result;
  };
  std::vector<Strategy> strategies;
  for (const bool by_layer : {false, true}) {
    ZeroOptions options{.shard = 4, .replicas = 1, .prefetch = 2};
    options.reshard_after_forward = true;
    options.by_layer = by_layer;
    strategies.push_back(MakeZero(options, network));
  }
  ZeroOptions by_elements{.shard = 4, .replicas = 1};
  by_elements.prefetch_elements = 10 * kHidden * kHidden;
  strategies.push_back(MakeZero(by_elements, network));
  FourDOptions grid;
  grid.column = 2;
  grid.depth = 4;
  strategies.push_back(MakeFourD(grid, network));
  for (const Strategy& strategy : strategies) {
    EXPECT_EQ(names(strategy, Recomputation::kFull, 0), names(strategy, Recomputation::kNone, 0));
    EXPECT_NE(names(strategy, Recomputation::kFull, 1), names(strategy, Recomputation::kNone, 0));
  }
}

TEST(StrategyBytesTest, WithinALayerGathersBeginAndSumsEndWithIt) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto plan = [&](bool within_layer) {
    ZeroOptions options{.shard = 4, .replicas = 1, .prefetch = 4};
    options.within_layer = within_layer;
    return PlanStep(network, SmallTraining(), MakeZero(options, network));
  };
  // Gathers that begin before the pass through their layer does, and layers whose last
  // reduce-scatter the first kernel of the next one does not wait for.
  const auto crossing = [](const Schedule& schedule) {
    std::pair<int, int> result;
    const std::vector<Op>& ops = schedule.roles[0].ops;
    std::optional<std::pair<Phase, int32_t>> at;
    std::optional<OpId> last_sum;  // of one stream, so that the others are done before
    for (uint32_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (op.tag.phase != Phase::kForward && op.tag.phase != Phase::kBackward) continue;
      const std::pair here = {op.tag.phase, op.tag.layer};
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective != nullptr) {
        if (collective->kind == CollectiveKind::kReduceScatter && op.tag.layer >= 0)
          last_sum = OpId(i);
        if (collective->kind == CollectiveKind::kAllGather && at && at->second >= 0)
          result.first += here != *at ? 1 : 0;
        continue;
      }
      if (at != here) {
        if (last_sum)
          result.second += testing::Value(op.after, testing::Contains(*last_sum)) ? 0 : 1;
        last_sum.reset();
      }
      at = here;
    }
    return result;
  };
  EXPECT_GT(crossing(plan(false)).first, 0);
  EXPECT_EQ(crossing(plan(false)).second, 2);
  EXPECT_EQ(crossing(plan(true)), std::make_pair(0, 0));
}

TEST(StrategyBytesTest, DeepSpeedGathersAheadByElementsAndReducesInBuckets) {
  // A layer has matrices of 3, 1, 4 and 4 times h² weights.
  const double h2 = kHidden * kHidden;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto plan = [&](double prefetch, double most, double reduce) {
    ZeroOptions options{.shard = 4, .replicas = 1};
    options.prefetch_elements = static_cast<uint64_t>(prefetch);
    options.most_gathered = static_cast<uint64_t>(most);
    options.reduce_elements = static_cast<uint64_t>(reduce);
    return PlanStep(network, SmallTraining(), MakeZero(options, network));
  };
  // The position of a layer's first gather relative to its own product tells how far ahead it was
  // issued.
  const auto place = [](const Schedule& schedule, const std::string& name) {
    const std::vector<Op>& ops = schedule.roles[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].name == name && ops[i].tag.layer == 0) return i;
    }
    return ops.size();
  };
  // One element ahead asks for one matrix more: the gather of the projection before qkv's product.
  const Schedule ahead = plan(1, 0, 0);
  EXPECT_LT(place(ahead, "all-gather projection"), place(ahead, "qkv"));
  // The table is held too; if that is all that may be held, nothing is gathered ahead.
  const Schedule full = plan(1, 1, 0);
  EXPECT_GT(place(full, "all-gather projection"), place(full, "qkv"));
  // Gradients of the layers: 4, 4, 1 and 3 h². With a bucket of 8 h² they go in pairs of 4 + 4,
  // then 1 + 3 and the next layer's 4, and so on.
  std::vector<double> reduced;
  const Schedule in_buckets = plan(1, 0, 8 * h2);
  for (const Op& op : in_buckets.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || collective->kind != CollectiveKind::kReduceScatter) continue;
    reduced.push_back(collective->bytes.value() / (2 * h2));
  }
  // The head is the table, whose gradient is whole once the embedding has added its own.
  EXPECT_THAT(reduced, ElementsAre(8, 8, 8, 2));
}

// Ops of layers by name and phase.
std::map<std::string, uint32_t> CollectivesOfLayers(const Schedule& schedule) {
  std::map<std::string, uint32_t> count;
  for (const Op& op : schedule.roles[0].ops) {
    if (!std::holds_alternative<Collective>(op.work) || op.tag.layer < 0) continue;
    ++count[fmt::format("{} in {}", op.name, Name(op.tag.phase))];
  }
  return count;
}

TEST(StrategyBytesTest, FsdpByLayersMovesTheSameBytesInOneGroupALayer) {
  // Two layers of four matrices: a group of four gathers in each direction, one of four
  // reduce-scatters; 8 + 8 + 8 collectives become 2 + 2 + 2.
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto plan = [&](bool by_layer) {
    ZeroOptions options{.shard = 4, .replicas = 1};
    options.by_layer = by_layer;
    return PlanStep(network, SmallTraining(), MakeZero(options, network));
  };
  EXPECT_EQ(LayerBytes(plan(true)), LayerBytes(plan(false)));
  EXPECT_EQ(CollectivesOfLayers(plan(true)),
            (std::map<std::string, uint32_t>{{"all-gather layer in forward", 2},
                                             {"all-gather layer in backward", 2},
                                             {"reduce-scatter layer in backward", 2}}));
}

TEST(StrategyBytesTest, LayersAreGatheredOneAheadOfTheBackwardPassWithAndWithoutRecomputation) {
  // Layer 1 comes during the backward pass of the output layer, layer 0 when layer 1 begins: before
  // any recomputation of it, if there is one.
  const auto gathers = [](Recomputation recomputation) {
    const Training training = SmallTraining(recomputation);
    const Network network = MakeDecoder(SmallModel(), training);
    ZeroOptions options{.shard = 4, .replicas = 1};
    options.by_layer = true;
    const Schedule schedule = PlanStep(network, training, MakeZero(options, network));
    std::vector<std::string> events;
    for (const Op& op : schedule.roles[0].ops) {
      if (op.tag.phase != Phase::kRecompute && op.tag.phase != Phase::kBackward) continue;
      const bool is_first = op.name == "qkv" || op.name == "output dX" || op.name == "down dX";
      if (op.name != "all-gather layer" && !is_first) continue;
      events.push_back(fmt::format("{} {}", op.name, op.tag.layer));
    }
    return events;
  };
  EXPECT_THAT(gathers(Recomputation::kFull),
              ElementsAre("all-gather layer 1", "output dX -1", "all-gather layer 0", "qkv 1",
                          "down dX 1", "qkv 0", "down dX 0"));
  EXPECT_THAT(gathers(Recomputation::kNone),
              ElementsAre("all-gather layer 1", "output dX -1", "all-gather layer 0", "down dX 1",
                          "down dX 0"));
}

TEST(StrategyBytesTest, GradientsInBf16TravelInHalfTheBytesOfFp32) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto bytes = [&](const Strategy& strategy, DType gradients) {
    Training training = SmallTraining();
    training.gradients = gradients;
    return LayerBytes(PlanStep(network, training, strategy));
  };
  const double weights = kLayers * 12 * kHidden * kHidden;
  const Strategy data_parallel = MakeDataParallel(4, false, network);
  EXPECT_EQ(bytes(data_parallel, DType::kFp32),
            (Bytes4{{"all-reduce on data in synchronize", weights * kFp32}}));
  EXPECT_EQ(bytes(data_parallel, DType::kBf16),
            (Bytes4{{"all-reduce on data in synchronize", weights * kBf16}}));
  const Strategy zero_1 = MakeZero({.shard = 4, .replicas = 2, .stage = 1}, network);
  EXPECT_EQ(bytes(zero_1, DType::kBf16),
            (Bytes4{{"all-reduce on replica in synchronize", weights / 4 * kBf16},
                    {"reduce-scatter on shard in synchronize", weights * kBf16},
                    {"all-gather on shard in update", weights * kBf16}}));
}

TEST(StrategyBytesTest, AtpsFourTerms) {
  // Eq. 2: 3h/d1 and 4h/d1 on the second dimension, h/d2 and h/d2 on the first, times b·s. Around
  // the core, which eq. 2 leaves out, h/d1 is gathered. Backward by the shapes: see strategy_atp.h.
  const uint32_t d1 = 4;
  const uint32_t d2 = 2;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const Schedule schedule =
      PlanStep(network, SmallTraining(), MakeAtp({.d1 = d1, .d2 = d2, .data = 1}, network));
  const double mh = kLayers * kRows * kHidden * kBf16;
  EXPECT_EQ(LayerBytes(schedule), (Bytes4{{"all-reduce on d2 in forward", (3 + 4) * mh / d1},
                                          {"all-reduce on d1 in forward", (1 + 1) * mh / d2},
                                          {"all-gather on d2 in forward", mh / d1},
                                          {"all-reduce on d2 in backward", 4 * mh / d1},
                                          {"reduce-scatter on d2 in backward", mh / d1},
                                          {"all-reduce on d1 in backward", (1 + 1) * mh / d2},
                                          {"all-gather on d2 in backward", 3 * mh / d1}}));
}

TEST(StrategyBytesTest, RowFirstAtpExchangesTheDimensions) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  AtpOptions options{.d1 = 2, .d2 = 4, .data = 1};
  options.column_first = false;
  const Schedule schedule = PlanStep(network, SmallTraining(), MakeAtp(options, network));
  const double mh = kLayers * kRows * kHidden * kBf16;
  const Bytes4 bytes = LayerBytes(schedule);
  EXPECT_EQ(bytes.at("all-reduce on d1 in forward"), (3 + 4) * mh / 4);
  EXPECT_EQ(bytes.at("all-reduce on d2 in forward"), (1 + 1) * mh / 2);
}

TEST(StrategyBytesTest, ChunksMoveTheSameBytesInMoreCollectives) {
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const auto plan = [&](uint32_t chunks) {
    AtpOptions options{.d1 = 2, .d2 = 2, .data = 1};
    options.chunks = chunks;
    return PlanStep(network, SmallTraining(), MakeAtp(options, network));
  };
  EXPECT_EQ(LayerBytes(plan(1)), LayerBytes(plan(4)));
}

TEST(StrategyBytesTest, SummaMovesPanelsInEveryRound) {
  // q = 2 rounds of each of the three products; X, Y blocks of m·k/(q²·depth), W blocks of k·n/q².
  const double q = 2;
  const double depth = 2;
  const Network network = MakeDecoder(SmallModel(), SmallTraining());
  const Schedule schedule =
      PlanStep(network, SmallTraining(), MakeSumma({.q = 2, .depth = 2, .data = 1}, network));
  const double h = kHidden;
  double x = 0;  // sum over the products of a layer
  double w = 0;
  const std::pair<double, double> products[] = {{h, 3 * h}, {h, h}, {h, 4 * h}, {4 * h, h}};
  for (const auto& [k, n] : products) {
    x += kRows * k / (q * q * depth);
    w += k * n / (q * q);
  }
  x *= kLayers * q * kBf16;
  w *= kLayers * q * kBf16;
  EXPECT_EQ(LayerBytes(schedule),
            (Bytes4{{"broadcast on column in forward", x},
                    {"broadcast on row in forward", w},
                    {"broadcast on row in backward", w},     // dX
                    {"reduce on column in backward", x},     // dX
                    {"broadcast on column in backward", x},  // dW
                    {"reduce on row in backward", w},        // dW
                    {"all-reduce on depth in synchronize", w / q / kBf16 * kFp32}}));
}

// ---- AutoDDL, Fig. 3: an attention layer of hidden size 8192 on 64 nodes, 1024 sequences of 1024

// What a rank sends in rings for the collectives of layer 1's attention block, forward: n·(p-1)/p,
// twice that for an all-reduce.
double AttentionTraffic(const Schedule& schedule) {
  double bytes = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || op.tag.layer != 1 || op.tag.phase != Phase::kForward) continue;
    const bool in_block = op.name.ends_with("norm 1") || op.name.ends_with("q, k, v") ||
                          op.name.ends_with("attention") || op.name.ends_with("projection");
    if (!in_block) continue;
    const double p = schedule.communicators[collective->communicator.index()].size();
    const double rounds = collective->kind == CollectiveKind::kAllReduce ? 2 : 1;
    bytes += rounds * (p - 1) / p * collective->bytes.value();
  }
  return bytes;
}

GptModel WideModel() {
  GptModel model;
  model.name = "AutoDDL, wide";
  model.layers = 2;
  model.hidden = 8192;
  model.heads = 64;
  model.vocabulary = 51200;
  model.tied = false;
  return model;
}

Training WideTraining() {
  Training training;
  training.batch = 1024;
  training.sequence = 1024;
  training.recomputation = Recomputation::kNone;
  training.precision = DType::kFp32;
  return training;
}

constexpr double kGiB = 1073741824.0;

TEST(AutoDdlFigure3Test, MegatronMoves15GBAnAttentionLayer) {
  // 4 replicas of 16 ranks: an all-reduce of 2^31 elements (2^20 tokens / 4 · 8192) is 2·15/16·2^31
  // = 3.75·2^30 elements, 15 GiB in fp32.
  const Network network = MakeDecoder(WideModel(), WideTraining());
  const Schedule schedule =
      PlanStep(network, WideTraining(), MakeMegatron({.tensor = 16, .data = 4}, network));
  EXPECT_EQ(AttentionTraffic(schedule), 15 * kGiB);
}

TEST(AutoDdlFigure3Test, SbpMoves8GBAnAttentionLayer) {
  // Mesh [4 | 2, 2, 2, 2], p0 = 4. QKV: p1 = {1, 2, 4}, p2 = {3}; projection: p1 = {3, 4}, p2 = {1,
  // 2}. In units of 2^30 elements, all of X being 8 on 4 replicas: gather X (8/(4·2) = 1)·7/8,
  // reduce-scatter Q, K, V (24/(4·8))·1/2, gather the core's output (8/(4·4))·3/4, reduce-scatter
  // (8/(4·4))·3/4: 2 in all, 8 GiB.
  const Network network = MakeDecoder(WideModel(), WideTraining());
  const Placement b = B();
  const Placement rows = S(0);
  const Placement columns = S(1);
  // The mesh lists its innermost axis first: axes 4, 3, 2, 1, 0 of the comment.
  const DeviceMesh mesh({{"4", 2}, {"3", 2}, {"2", 2}, {"1", 2}, {"0", 4}});
  const ProductLayouts first = {.x = Nested({b, columns, b, b, rows}),
                                .w = Nested({columns, rows, columns, columns, b}),
                                .rest = {}};
  const ProductLayouts second = {.x = Nested({b, b, columns, columns, rows}),
                                 .w = Nested({columns, columns, rows, rows, b}),
                                 .rest = {}};
  std::vector<ProductLayouts> products;
  for (const NetworkMatrix& matrix : network.matrices) {
    const bool is_second = matrix.role == MatrixRole::kSecond || matrix.role == MatrixRole::kTable;
    products.push_back(is_second ? second : first);
  }
  const Schedule schedule =
      PlanStep(network, WideTraining(), MakeSbp(mesh, std::move(products), false, false));
  EXPECT_EQ(AttentionTraffic(schedule), 8 * kGiB);
}

}  // namespace strategy_bytes_test
}  // namespace rehearse
