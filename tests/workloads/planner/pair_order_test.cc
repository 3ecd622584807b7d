// Orders of pairs: which are possible, and what they put beside what.
#include "workloads/planner/pair_order.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/schedule_check.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/layer_parts.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace pair_order_test {

using Part = PassPart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GptModel Experts() {
  GptModel model;
  model.name = "experts";
  model.layers = 4;
  model.hidden = 16;
  model.heads = 4;
  model.groups = 4;
  model.vocabulary = 32;
  model.llama = true;
  model.feed_forward = 32;
  model.tied = false;
  model.experts = ExpertModel{.count = 8, .per_token = 2, .hidden = 12, .shared = 8};
  return model;
}

Training TrainingOf() {
  Training training;
  training.micro_batches = 8;
  training.batch = 32;
  training.sequence = 16;
  training.recomputation = Recomputation::kNone;
  return training;
}

TEST(PairOrderTest, KnownOnesArePossible) {
  for (const PairOrderFacts& facts : PairOrders()) EXPECT_NO_THROW(CheckPairOrder(facts.order));
}

TEST(PairOrderTest, TwoPartsThatCannotFollowEachOtherAreNamed) {
  PairOrder order = PairOrders().front().order;
  std::swap(*std::find(order.begin(), order.end(), Part::kBackwardExperts),
            *std::find(order.begin(), order.end(), Part::kBackwardDispatch));
  try {
    CheckPairOrder(order);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr("I.experts"));
    EXPECT_THAT(std::string(error.what()), HasSubstr("I.dispatch"));
  }
}

// What a layer needs comes again in front of the first part of the way back that takes it: the
// second norm's result in front of the shared expert's, as that needs it before the router does.
TEST(PairOrderTest, WhatIsRecomputedComesBeforeWhatNeedsIt) {
  Training training = TrainingOf();
  training.recomputation = Recomputation::kSelective;
  training.recomputed_ops.norms = true;
  training.recomputed_ops.activations = true;
  const Network network = MakeDecoder(Experts(), training);
  const std::vector<Unit> units = UnitsOf(network);
  const LayerParts parts(network, training, units[1]);
  const auto again = [&](const std::string& name) {
    for (uint32_t node = units[1].begin; node < units[1].end; ++node)
      if (network.nodes[node].name == name) return parts.Again(node);
    ADD_FAILURE() << name;
    return Part::kForwardAttention;
  };
  EXPECT_EQ(again("norm 1"), Part::kBackwardAttention);
  EXPECT_EQ(again("norm 2"), Part::kBackwardDispatch);
  EXPECT_EQ(again("experts swiglu"), Part::kBackwardExperts);
  EXPECT_EQ(again("shared swiglu"), Part::kBackwardExperts);
}

// With few micro-batches some ranks do all their forward passes first, and then begin no pair: the
// first gradient would wait for a neighbour's pair, which waits for what the last forward pass
// sends.
TEST(PairOrderTest, RanksWithFewMicroBatchesWaitForNobody) {
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    for (const uint32_t a_rank : {1u, 2u, 3u}) {
      for (const uint32_t rounds : {1u, 2u, 3u}) {
        GptModel model = Experts();
        model.layers = ranks * a_rank;
        Training training = TrainingOf();
        training.micro_batches = ranks * rounds;
        training.batch = 4 * training.micro_batches;
        const Network network = MakeDecoder(model, training);
        CombinedOptions options;
        options.zero.stage = 1;
        options.zero.shard = 2;
        options.expert = 2;
        const Strategy strategy = MakeCombined(options, network);
        for (const bool batches : {true, false}) {
          StagePipeline pipeline;
          pipeline.places = a_rank == 1 ? OneStageARank(ranks) : Looped(ranks, a_rank);
          pipeline.units_of_stage = EvenStages(network, ranks * a_rank);
          pipeline.actions = a_rank == 1
                                 ? OneForwardOneBackwardInPairs(ranks, training.micro_batches)
                                 : InterleavedInPairs(ranks, a_rank, training.micro_batches);
          pipeline.pairs_passes = true;
          pipeline.pair_order = PairOrders()[1].order;
          pipeline.batches_messages = batches;
          EXPECT_NO_THROW(CheckSchedule(PlanPipeline(network, training, strategy, pipeline)))
              << ranks << " ranks, " << a_rank << " stages each, " << rounds << " rounds";
        }
      }
    }
  }
}

// The all-to-alls of the pair in the middle of a layer, in the order of Fig. 4 of arXiv 2412.19437,
// and none is awaited before a part of the other pass has begun.
TEST(PairOrderTest, DualPipesAllToAlls) {
  const Training training = TrainingOf();
  const Network network = MakeDecoder(Experts(), training);
  CombinedOptions options;
  options.zero.stage = 1;
  options.zero.shard = 4;
  options.expert = 4;
  const Strategy strategy = MakeCombined(options, network);
  StagePipeline pipeline = {OneStageARank(2), EvenStages(network, 2),
                            OneForwardOneBackwardInPairs(2, 8)};
  pipeline.pairs_passes = true;
  pipeline.pair_order = PairOrders().front().order;
  const Schedule schedule = PlanPipeline(network, training, strategy, pipeline);
  const std::vector<Op>& ops = schedule.roles[0].ops;
  std::vector<std::string> sent;
  for (const Op& op : ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || collective->kind != CollectiveKind::kAllToAll) continue;
    if (op.tag.micro_batch != 0 && op.tag.micro_batch != 3) continue;
    const bool back = op.tag.phase == Phase::kBackward;
    sent.push_back(op.name.substr(0, op.name.find(' ')) + (back ? " B" : " F"));
  }
  // Micro-batch 0 goes forward alone; what it sends back meets what micro-batch 3 sends.
  ASSERT_GE(sent.size(), 12u);
  const std::vector<std::string> pair(sent.begin() + 4, sent.begin() + 12);
  EXPECT_THAT(pair, ElementsAre("dispatch B", "dispatch F", "combine B", "combine F", "dispatch B",
                                "dispatch F", "combine B", "combine F"));
}

}  // namespace pair_order_test
}  // namespace rehearse
