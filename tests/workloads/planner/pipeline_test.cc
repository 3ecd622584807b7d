// Schedules with several stages: that they are valid, what they keep, how long they idle.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/preset_strategies.h"
#include "topology/cluster/builder.h"
#include "topology/presets/presets.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/unet_network.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"

namespace rehearse {
namespace pipeline_test {

using Generator = std::vector<Action> (*)(uint32_t stages, uint32_t micro_batches);

Training TrainingOf(uint32_t micro_batches) {
  Training training;
  training.batch = 8 * micro_batches;
  training.sequence = 8;
  training.micro_batches = micro_batches;
  training.recomputation = Recomputation::kNone;
  return training;
}

Network Decoder(const Training& training, bool tied = true) {
  GptModel model;
  model.name = "small";
  model.layers = 4;
  model.hidden = 48;
  model.heads = 8;
  model.vocabulary = 96;
  model.tied = tied;
  return MakeDecoder(model, training);
}

Schedule PlanEven(const Network& network, const Training& training, const Strategy& strategy,
                  uint32_t stages, Generator generate) {
  return PlanStages(network, training, strategy, EvenStages(network, stages),
                    generate(stages, network.micro_batches));
}

Schedule PlanAlone(uint32_t stages, uint32_t micro_batches, Generator generate) {
  const Training training = TrainingOf(micro_batches);
  const Network network = Decoder(training);
  return PlanEven(network, training, MakeDataParallel(1, false, network), stages, generate);
}

TEST(StagesTest, LayersAreSharedEvenlyAndTheRestIsAtTheEnds) {
  // Units: embedding, 4 layers, head. Three stages have 2, 1 and 1 layers.
  const Network network = Decoder(TrainingOf(1));
  EXPECT_EQ(EvenStages(network, 1), (std::vector<uint32_t>{6}));
  EXPECT_EQ(EvenStages(network, 3), (std::vector<uint32_t>{3, 1, 2}));
  EXPECT_EQ(EvenStages(network, 4), (std::vector<uint32_t>{2, 1, 1, 2}));
  EXPECT_THROW(EvenStages(network, 5), Error);
  EXPECT_THROW(CutIntoStages(network, {3, 2}, OneStageARank(2)), Error);
  EXPECT_THROW(CutIntoStages(network, {6, 0}, OneStageARank(2)), Error);
}

TEST(StagesTest, OnlyTheStreamBetweenLayersCrosses) {
  const Network network = Decoder(TrainingOf(1));
  const std::vector<Stage> stages =
      CutIntoStages(network, EvenStages(network, 4), OneStageARank(4));
  for (uint32_t i = 0; i + 1 < 4; ++i) {
    ASSERT_EQ(stages[i].leaves.size(), 1u);
    EXPECT_EQ(network.nodes[stages[i].leaves[0]].name, "residual 2");
    EXPECT_EQ(stages[i + 1].arrives, stages[i].leaves);
  }
  EXPECT_TRUE(stages[0].arrives.empty());
  EXPECT_TRUE(stages[3].leaves.empty());
  EXPECT_EQ(stages[0].shared.size(), 1u);  // the table, with the output layer of the last stage
  EXPECT_EQ(stages[3].shared.size(), 1u);
}

TEST(PipelineTest, SchedulesAreValidForEveryOrderAndStrategy) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    Training training = TrainingOf(6);
    training.recomputation = recomputation;
    const Network network = Decoder(training);
    ZeroOptions zero{.shard = 2, .replicas = 2};
    zero.prefetch = 2;
    FourDOptions four_d{.column = 2, .row = 2, .depth = 2};
    MegatronOptions megatron{.tensor = 2, .data = 2};
    megatron.sequence_parallel = true;
    megatron.distributed_optimizer = true;
    AtpOptions atp{.d1 = 2, .d2 = 2};
    atp.chunks = 2;
    for (const Strategy& strategy :
         {MakeDataParallel(4, true, network), MakeZero(zero, network), MakeFourD(four_d, network),
          MakeMegatron(megatron, network), MakeAtp(atp, network)}) {
      for (const Generator generate :
           {OneAfterAnother, GPipe, OneForwardOneBackward, ZeroBubbleH1}) {
        for (const uint32_t stages : {2u, 4u}) {
          SCOPED_TRACE(strategy.name);
          const Schedule schedule = PlanEven(network, training, strategy, stages, generate);
          EXPECT_EQ(schedule.roles.size(), stages);
          EXPECT_EQ(schedule.ranks(), stages * strategy.mesh.size());
          CheckSchedule(schedule);
          CheckBuffers(schedule);
        }
      }
    }
  }
}

// Ops of a role that begin with `name` and lie before the first collective of `kind` of a layer.
size_t OpsBefore(const Role& role, const std::string& name, CollectiveKind kind, int32_t layer) {
  size_t count = 0;
  for (const Op& op : role.ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective != nullptr && collective->kind == kind && op.tag.layer == layer) return count;
    count += op.name == name ? 1 : 0;
  }
  ADD_FAILURE() << "no such collective of layer " << layer;
  return count;
}

TEST(PipelineTest, InterleavedRanksGatherAndSumWholeStagesAtTheSameTime) {
  constexpr uint32_t kRanks = 4;
  constexpr uint32_t kOfRank = 3;
  const Training training = TrainingOf(kRanks);
  GptModel model;
  model.name = "small";
  model.layers = kRanks * kOfRank;  // one for each stage
  model.hidden = 48;
  model.heads = 8;
  model.vocabulary = 96;
  model.tied = false;
  const Network network = MakeDecoder(model, training);
  MegatronOptions megatron{.tensor = 1, .data = 2, .distributed_optimizer = true};
  megatron.overlap_gradients = true;
  megatron.overlap_parameter_gathers = true;
  const PipelineOrder order =
      OrderOf(PipelineSchedule::kInterleaved, kRanks, kOfRank, kRanks, {}, {});
  const Schedule schedule = PlanPipeline(
      network, training, MakeMegatron(megatron, network),
      {order.places, EvenStages(network, order.places.stages_of_copy()), order.actions});
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  ASSERT_EQ(schedule.roles.size(), kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    SCOPED_TRACE(rank);
    const Role& role = schedule.roles[rank];
    const auto layer = [&](uint32_t stage) { return static_cast<int32_t>(stage * kRanks + rank); };
    // The first two stages at the beginning. The third when the second begins, after a round of
    // micro-batches, and `rank` micro-batches earlier.
    const auto gathered = [&](uint32_t stage) {
      return OpsBefore(role, "norm 1", CollectiveKind::kAllGather, layer(stage));
    };
    EXPECT_EQ(gathered(0), 0u);
    EXPECT_EQ(gathered(1), 0u);
    EXPECT_EQ(gathered(2), kRanks - rank);
    // Gradients are complete after a round, the last stage's first; `rank` micro-batches later they
    // are summed, at the latest when the last are there.
    const auto summed = [&](uint32_t stage) {
      return OpsBefore(role, "norm 1 backward", CollectiveKind::kReduceScatter, layer(stage));
    };
    EXPECT_EQ(summed(2), kRanks + rank);
    EXPECT_EQ(summed(1), 2 * kRanks + rank);
    EXPECT_EQ(summed(0), 3 * kRanks);
  }
}

TEST(PipelineTest, SkipConnectionsPassThroughTheStagesBetween) {
  UnetModel model;
  model.name = "u-net";
  model.channels = 12;
  model.multipliers = {1, 2};
  model.blocks = 1;
  model.image = 4;
  model.attention = {2};
  model.head_size = 2;
  model.groups = 6;
  const Training training = TrainingOf(3);
  const Network network = MakeUnet(model, training);
  const auto units = static_cast<uint32_t>(UnitsOf(network).size());
  ASSERT_GE(units, 3u);
  const std::vector<uint32_t> cut = {units / 3, units / 3, units - units / 3 * 2};
  const std::vector<Stage> stages = CutIntoStages(network, cut, OneStageARank(3));
  std::vector<uint32_t> through;  // what the middle stage neither makes nor is the last to take
  std::set_intersection(stages[1].arrives.begin(), stages[1].arrives.end(),
                        stages[1].leaves.begin(), stages[1].leaves.end(),
                        std::back_inserter(through));
  EXPECT_FALSE(through.empty());
  const Schedule schedule = PlanStages(network, training, MakeDataParallel(2, false, network), cut,
                                       OneForwardOneBackward(3, training.micro_batches));
  CheckSchedule(schedule);
  CheckBuffers(schedule);
}

uint32_t CountOps(const Role& role, const std::string& name) {
  return static_cast<uint32_t>(std::count_if(role.ops.begin(), role.ops.end(),
                                             [&](const Op& op) { return op.name == name; }));
}

TEST(PipelineTest, EachStageHasItsPartOfTheNetworkOnly) {
  const Schedule schedule = PlanAlone(4, 6, OneForwardOneBackward);
  for (uint32_t stage = 0; stage < 4; ++stage) {
    const Role& role = schedule.roles[stage];
    EXPECT_EQ(CountOps(role, "embedding"), stage == 0 ? 6u : 0u);
    EXPECT_EQ(CountOps(role, "cross entropy"), stage == 3 ? 6u : 0u);
    EXPECT_EQ(CountOps(role, "qkv"), 6u);  // one layer
    EXPECT_EQ(CountOps(role, "send residual 2"), stage < 3 ? 6u : 0u);
    EXPECT_EQ(CountOps(role, "receive residual 2"), stage > 0 ? 6u : 0u);
    EXPECT_EQ(CountOps(role, "receive d residual 2"), stage < 3 ? 6u : 0u);
    EXPECT_EQ(CountOps(role, "send d residual 2"), stage > 0 ? 6u : 0u);
    // The table and the output layer are one matrix, which the ends of the pipeline have both.
    EXPECT_EQ(CountOps(role, "all-reduce gradient of embedding"), stage % 3 == 0 ? 1u : 0u);
    EXPECT_EQ(CountOps(role, "all-reduce gradient norm"), 1u);
  }
}

TEST(PipelineTest, CommunicatorsHaveGroupsInEveryStage) {
  const Training training = TrainingOf(2);
  const Network network = Decoder(training);
  const Schedule schedule =
      PlanEven(network, training, MakeMegatron({.tensor = 2, .data = 2}, network), 2, GPipe);
  std::map<std::string, const Communicator*> named;
  for (const Communicator& communicator : schedule.communicators) {
    named[communicator.name()] = &communicator;
  }
  // Rank = tensor + 2·data + 4·stage.
  ASSERT_EQ(named.count("tensor"), 1u);
  EXPECT_EQ(named["tensor"]->group_count(), 4u);
  EXPECT_EQ(named["tensor"]->PositionOf(5)->group, named["tensor"]->PositionOf(4)->group);
  EXPECT_EQ(named["stages"]->size(), 2u);
  EXPECT_EQ(named["stages"]->PositionOf(7)->group, named["stages"]->PositionOf(3)->group);
  EXPECT_EQ(named["stages"]->PositionOf(7)->member, 1u);
  EXPECT_EQ(named["model"]->size(), 4u);  // tensor and stages
}

TEST(PipelineTest, ARecomputationOfItsOwnComesOnce) {
  Training training = TrainingOf(1);
  training.recomputation = Recomputation::kFull;
  const Network network = Decoder(training);
  std::vector<Action> actions = OneAfterAnother(1, 1);
  actions.insert(actions.begin() + 1, {0, 0, ActionKind::kRecompute});
  const auto units = static_cast<uint32_t>(UnitsOf(network).size());
  const Strategy strategy = MakeDataParallel(1, false, network);
  const Schedule schedule = PlanStages(network, training, strategy, {units}, actions);
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  // All layers again, then all gradients: the last recomputed op comes before the first gradient.
  const Role& role = schedule.roles[0];
  EXPECT_EQ(CountOps(role, "qkv"), 2 * 4u);
  bool goes_back = false;
  for (const Op& op : role.ops) {
    goes_back |= op.tag.phase == Phase::kBackward;
    EXPECT_FALSE(goes_back && op.tag.phase == Phase::kRecompute);
  }
  training.recomputation = Recomputation::kNone;
  EXPECT_THROW(PlanStages(network, training, strategy, {units}, actions), Error);
}

// ---- on an ideal machine ------------------------------------------------------------------------

// Devices behind a switch whose links cost nothing.
std::unique_ptr<Cluster> IdealCluster(uint32_t devices) {
  ClusterBuilder builder("ideal");
  const auto preset = BuildPreset("switch", {{"devices", 1}}, {});
  const uint32_t device = builder.AddDeviceSpec(preset->DeviceOf(0));
  Vertex center;
  center.name = "switch";
  center.kind = VertexKind::kSwitch;
  const auto hub = builder.AddVertex(center);
  for (uint32_t rank = 0; rank < devices; ++rank) {
    Vertex vertex;
    vertex.name = fmt::format("gpu{}", rank);
    vertex.kind = VertexKind::kDevice;
    ClusterLink link;
    link.kind = LinkKind::kNetwork;
    link.bandwidth = BytesPerSecond(1e18);
    builder.AddLinks(builder.AddVertex(vertex, device), hub, link);
  }
  return std::make_unique<Cluster>(builder.Finish());
}

// Forward, input and weight gradient of a micro-batch on a stage take the given times, in the first
// op of each; all else takes no time.
void SetDurations(Schedule* schedule, double forward, double input, double weight, bool apart) {
  for (Role& role : schedule->roles) {
    std::set<std::pair<int, int32_t>> begun;
    for (Op& op : role.ops) {
      auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr) continue;
      const bool is_weight = apart && op.name.ends_with(" dW");
      const int part = op.tag.phase == Phase::kBackward ? 1 + (is_weight ? 1 : 0) : 0;
      double seconds = 0;
      const bool counts = op.tag.phase <= Phase::kBackward;
      if (counts && begun.emplace(part, op.tag.micro_batch).second) {
        seconds = part == 0 ? forward : part == 1 ? input + (apart ? 0 : weight) : weight;
      }
      *compute = Compute();
      compute->kind = ComputeKind::kFixed;
      compute->duration = Seconds(seconds);
    }
  }
}

double IdealStep(uint32_t stages, uint32_t micro_batches, Generator generate, double forward,
                 double input, double weight) {
  Schedule schedule = PlanAlone(stages, micro_batches, generate);
  SetDurations(&schedule, forward, input, weight, generate == ZeroBubbleH1);
  const auto cluster = IdealCluster(stages);
  Router router(*cluster);
  return ToSeconds(Simulate(Lower(schedule, router).program, stages).timeline.step).value();
}

TEST(PipelineTest, TheBubbleOfGPipeAndOneForwardOneBackwardIsThatOfTheBooks) {
  // The last stage cannot begin before a micro-batch has been through the p-1 before it, and after
  // its last gradient p-1 more have to be made: (p-1)·(F + B) beside its own m·(F + B). So it idles
  // for (p-1)/(m + p-1) of the step.
  constexpr double kForward = 1;
  constexpr double kBackward = 2;
  for (const Generator generate : {GPipe, OneForwardOneBackward}) {
    for (const uint32_t stages : {2u, 4u}) {
      for (const uint32_t micro_batches : {1u, 4u, 8u}) {
        const double step = IdealStep(stages, micro_batches, generate, kForward, kBackward, 0);
        const double work = micro_batches * (kForward + kBackward);
        const double bubble = (stages - 1.0) / (micro_batches + stages - 1.0);
        EXPECT_NEAR((step - work) / step, bubble, 1e-6) << stages << ", " << micro_batches;
      }
    }
  }
}

TEST(PipelineTest, ZeroBubbleIdlesForAThirdOfThat) {
  // The way to the last stage and back costs (p-1)·(F + B); the first stage fills the wait with
  // weight gradients of the same length as one of these; the last ones are done by then. What is
  // left is (p-1)·(F + B - W), with F = B = W one third of (p-1)·(F + B + W).
  for (const uint32_t stages : {2u, 4u}) {
    for (const uint32_t micro_batches : {4u, 8u}) {
      const double together = IdealStep(stages, micro_batches, OneForwardOneBackward, 1, 1, 1);
      const double apart = IdealStep(stages, micro_batches, ZeroBubbleH1, 1, 1, 1);
      EXPECT_NEAR(together - 3.0 * micro_batches, 3.0 * (stages - 1), 1e-6);
      EXPECT_NEAR(apart - 3.0 * micro_batches, stages - 1.0, 1e-6);
    }
  }
}

// ---- memory -------------------------------------------------------------------------------------

// Micro-batches whose masks of the first dropout of a layer are alive at once: written forward,
// read backward.
uint32_t MostMasks(const Role& role) {
  std::map<uint32_t, std::pair<size_t, size_t>> lives;
  for (size_t i = 0; i < role.ops.size(); ++i) {
    for (const auto* touched : {&role.ops[i].reads, &role.ops[i].writes}) {
      for (const BufferId id : *touched) {
        if (!role.buffers[id.index()].name.starts_with("residual 1 mask")) continue;
        lives.try_emplace(id.index(), i, i).first->second.second = i;
      }
    }
  }
  uint32_t most = 0;
  for (size_t i = 0; i < role.ops.size(); ++i) {
    const auto alive = std::count_if(lives.begin(), lives.end(), [&](const auto& life) {
      return life.second.first <= i && i <= life.second.second;
    });
    most = std::max(most, static_cast<uint32_t>(alive));
  }
  return most;
}

TEST(PipelineTest, StagesKeepTheActivationsOfAsManyMicroBatchesAsAreInFlight) {
  // One layer per stage. 1F1B: p-s on stage s, however many there are; GPipe: all.
  const Schedule alternating = PlanAlone(4, 8, OneForwardOneBackward);
  const Schedule longer = PlanAlone(4, 16, OneForwardOneBackward);
  const Schedule all = PlanAlone(4, 8, GPipe);
  for (uint32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(MostMasks(alternating.roles[stage]), 4 - stage);
    EXPECT_EQ(MostMasks(all.roles[stage]), 8u);
    EXPECT_EQ(MemoryOf(alternating.roles[stage]).activations,
              MemoryOf(longer.roles[stage]).activations);
    EXPECT_GT(MemoryOf(all.roles[stage]).activations,
              MemoryOf(alternating.roles[stage]).activations);
  }
}

TEST(PipelineTest, WeightGradientsThatArePutOffKeepTheirOperands) {
  // X and dY of the products stay: more than with 1F1B on the last stage, which defers by 3.
  const Schedule together = PlanAlone(4, 8, OneForwardOneBackward);
  const Schedule apart = PlanAlone(4, 8, ZeroBubbleH1);
  EXPECT_GT(MemoryOf(apart.roles[3]).activations, MemoryOf(together.roles[3]).activations);
  // But not the masks, which dX has used up: p-s of them as before.
  for (uint32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(MostMasks(apart.roles[stage]), 4 - stage);
  }
}

TEST(PipelineTest, AGatheredLayerBelongsToTheMicroBatchesThatHoldIt) {
  // Kept from the forward pass to the last gradient: with p-s micro-batches in flight, one of them
  // always holds it, except on the last stage, which has one at a time and gathers again for each.
  const Training training = TrainingOf(6);
  const Network network = Decoder(training, /*tied=*/false);
  ZeroOptions options{.shard = 2};
  options.prefetch = 0;
  options.reshard_after_forward = false;
  const Schedule schedule =
      PlanEven(network, training, MakeZero(options, network), 2, OneForwardOneBackward);
  EXPECT_EQ(CountOps(schedule.roles[0], "all-gather qkv"), 2u);  // once each of its two layers
  EXPECT_EQ(CountOps(schedule.roles[1], "all-gather qkv"), 2 * 6u);
  // Given back after the forward pass, it is gathered for the gradients once more.
  options.reshard_after_forward = true;
  const Schedule again = PlanEven(network, training, MakeZero(options, network), 2, GPipe);
  EXPECT_EQ(CountOps(again.roles[0], "all-gather qkv"), 2 * 2 * 6u);
}

}  // namespace pipeline_test
}  // namespace rehearse
