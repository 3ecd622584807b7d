// Schedules of one stage, to the last bit: as the planner made them when it still planned one
// micro-batch after another, without a list of actions.
#include <gtest/gtest.h>

#include "tests/support/fingerprint.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/unet_network.h"
#include "workloads/networks/vgg_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace planned_schedules_test {

Training TrainingWith(Recomputation recomputation, uint32_t micro_batches) {
  Training training;
  training.batch = 12 * micro_batches;
  training.sequence = 4;
  training.micro_batches = micro_batches;
  training.recomputation = recomputation;
  return training;
}

Network Gpt(const Training& training) {
  GptModel model;
  model.name = "gpt";
  model.layers = 3;
  model.hidden = 24;
  model.heads = 12;
  model.vocabulary = 48;
  return MakeDecoder(model, training);
}

Network Llama(const Training& training) {
  GptModel model;
  model.name = "llama";
  model.layers = 3;
  model.hidden = 24;
  model.heads = 12;
  model.vocabulary = 48;
  model.llama = true;
  model.groups = 4;
  model.feed_forward = 48;
  model.tied = false;
  return MakeDecoder(model, training);
}

Network Vgg(const Training& training) {
  VggModel model;
  model.name = "vgg";
  model.stages = {{12, 12}, {24}};
  model.image = 4;
  model.hidden = 24;
  model.classes = 12;
  return MakeVgg(model, training);
}

Network Unet(const Training& training) {
  UnetModel model;
  model.name = "u-net";
  model.channels = 12;
  model.multipliers = {1, 2};
  model.blocks = 1;
  model.image = 4;
  model.attention = {2};
  model.head_size = 2;
  model.groups = 6;
  return MakeUnet(model, training);
}

Strategy Data(const Network& network) { return MakeDataParallel(2, true, network); }
Strategy Zero1(const Network& network) {
  ZeroOptions options{.shard = 2, .replicas = 2, .stage = 1};
  options.overlap_all_reduce = true;
  return MakeZero(options, network);
}
Strategy Fsdp(const Network& network) {
  ZeroOptions options{.shard = 4};
  options.prefetch = 2;
  return MakeZero(options, network);
}
Strategy FsdpByLayer(const Network& network) {
  ZeroOptions options{.shard = 2, .replicas = 2};
  options.by_layer = true;
  return MakeZero(options, network);
}
Strategy Megatron(const Network& network) {
  MegatronOptions options{.tensor = 2, .data = 2};
  options.sequence_parallel = true;
  return MakeMegatron(options, network);
}
Strategy FourD(const Network& network) {
  FourDOptions options;
  options.column = 2;
  options.row = 2;
  options.depth = 2;
  options.cached_layers = 1;
  return MakeFourD(options, network);
}
Strategy Atp(const Network& network) {
  AtpOptions options;
  options.d1 = 2;
  options.d2 = 2;
  options.chunks = 2;
  return MakeAtp(options, network);
}
Strategy Summa(const Network& network) {
  SummaOptions options;
  options.q = 2;
  return MakeSumma(options, network);
}

struct Known {
  const char* name;
  Network (*network)(const Training& training);
  Strategy (*strategy)(const Network& network);
  Recomputation recomputation;
  uint32_t micro_batches;
  const char* fingerprint;
};

constexpr Recomputation kNone = Recomputation::kNone;
constexpr Recomputation kFull = Recomputation::kFull;
const Known kKnown[] = {
    {"gpt, data parallel", Gpt, Data, kNone, 3, "1d7252436d1ac184"},
    {"gpt, data parallel, recomputation", Gpt, Data, kFull, 2, "ed3a801b658211a1"},
    {"gpt, selective recomputation", Gpt, Data, Recomputation::kSelective, 1, "916d7acfb3838ed9"},
    {"llama, ZeRO-1", Llama, Zero1, kNone, 2, "1c5732299885ae84"},
    {"gpt, FSDP", Gpt, Fsdp, kNone, 2, "f96f2f641fad0f86"},
    {"llama, FSDP, recomputation", Llama, Fsdp, kFull, 2, "cf812575293568ba"},
    {"gpt, FSDP by layer", Gpt, FsdpByLayer, kNone, 2, "2c9ad9fec6bdbcb4"},
    {"gpt, FSDP by layer, recomputation", Gpt, FsdpByLayer, kFull, 2, "7b80f8172e057c8e"},
    {"llama, sequence parallel", Llama, Megatron, kNone, 4, "16d44e335a407119"},
    {"gpt, sequence parallel, recomputation", Gpt, Megatron, kFull, 1, "ca27e33821248714"},
    {"gpt, 4D", Gpt, FourD, kFull, 2, "f98ee83153bb0cdf"},
    {"gpt, ATP in chunks", Gpt, Atp, kNone, 2, "36a1b57bfe8ba715"},
    {"llama, SUMMA", Llama, Summa, kFull, 1, "d7044ad96f58a09e"},
    {"vgg, 4D", Vgg, FourD, kNone, 2, "50fbba148256273c"},
    {"u-net, FSDP", Unet, Fsdp, kFull, 1, "5cd0f79d67588d53"},
};

TEST(PlannedSchedulesTest, OneStageIsPlannedAsEver) {
  for (const Known& known : kKnown) {
    Training training = TrainingWith(known.recomputation, known.micro_batches);
    if (known.recomputation == Recomputation::kSelective)
      training.attention = AttentionKernel::kUnfused;
    const Network network = known.network(training);
    const Schedule schedule = PlanStep(network, training, known.strategy(network));
    EXPECT_EQ(FingerprintOf(schedule), known.fingerprint) << known.name;
  }
}

}  // namespace planned_schedules_test
}  // namespace rehearse
