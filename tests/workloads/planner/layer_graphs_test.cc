// Which nodes a host launches at once, and how much less it then has to do.
#include "workloads/planner/layer_graphs.h"

#include <map>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace layer_graphs_test {

using ::testing::Each;
using ::testing::Not;

// The first layer has an MLP, the others experts.
GptModel Model(uint32_t layers, bool has_experts) {
  GptModel model;
  model.name = "graphs";
  model.layers = layers;
  model.hidden = 96;
  model.heads = 8;
  model.vocabulary = 192;
  model.llama = true;
  model.tied = false;
  if (has_experts) model.experts = ExpertModel{.count = 4, .per_token = 2, .hidden = 24};
  if (has_experts) model.experts->first_dense = 1;
  return model;
}

Training Launched(bool attention, bool mlp, bool router) {
  Training training;
  training.batch = 4;
  training.sequence = 8;
  training.recomputation = Recomputation::kNone;
  training.host_launch = Seconds(1);
  training.graphs_attention = attention;
  training.graphs_mlp = mlp;
  training.graphs_router = router;
  return training;
}

// By layer and phase: how long the host launches.
std::map<std::pair<int32_t, Phase>, double> LaunchesOf(const GptModel& model,
                                                       const Training& training) {
  const Network network = MakeDecoder(model, training);
  const Schedule schedule = PlanStep(network, training, MakeDataParallel(1, false, network));
  // A layer's wait is there when the next one begins.
  std::map<std::pair<int32_t, Phase>, double> seconds;
  std::pair<int32_t, Phase> before;
  for (const Op& op : schedule.roles[0].ops) {
    if (op.name == "launches")
      seconds[before] += std::get<Compute>(op.work).duration.value();
    else
      before = {op.tag.layer, op.tag.phase};
  }
  return seconds;
}

// Layers of a pattern are one part each, whose launches are one; experts are launched one by one.
TEST(LayerGraphsTest, LayersOfAPatternAreOnePart) {
  GptModel model = Model(4, true);
  model.layer_pattern = "M*-E";
  model.experts->first_dense = 0;
  model.mamba = StateSpaceModel{.state = 4, .head = 12, .groups = 2, .heads = 16};
  Training training = Launched(true, true, true);
  training.graphs_state_space = true;
  const Network network = MakeDecoder(model, training);
  const std::vector<uint32_t> graphs = GraphsOfNodes(network, training);
  std::map<int32_t, std::string> parts;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::string& part = parts[network.nodes[i].layer];
    const char digit = static_cast<char>('0' + graphs[i]);
    if (part.empty() || part.back() != digit) part += digit;
  }
  EXPECT_EQ(parts,
            (std::map<int32_t, std::string>{{-1, "0"}, {0, "4"}, {1, "1"}, {2, "2"}, {3, "30"}}));
  training.graphs_state_space = false;
  EXPECT_EQ(GraphsOfNodes(network, training).front(), 0u);
  EXPECT_EQ(GraphsOfNodes(network, training)[1], 0u);
}

TEST(LayerGraphsTest, PartsOfALayerEndWithItsSumsAndItsRouter) {
  const Training training = Launched(true, true, true);
  const Network network = MakeDecoder(Model(2, true), training);
  const std::vector<uint32_t> graphs = GraphsOfNodes(network, training);
  ASSERT_EQ(graphs.size(), network.nodes.size());
  std::map<int32_t, std::string> parts;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::string& part = parts[network.nodes[i].layer];
    const char digit = static_cast<char>('0' + graphs[i]);
    if (part.empty() || part.back() != digit) part += digit;
  }
  EXPECT_EQ(parts.at(-1), "0");
  EXPECT_EQ(parts.at(0), "12");   // attention, MLP
  EXPECT_EQ(parts.at(1), "130");  // attention, router, experts
  EXPECT_THAT(GraphsOfNodes(network, Launched(false, true, false)), Not(Each(0u)));
  EXPECT_TRUE(GraphsOfNodes(network, Launched(false, false, false)).empty());
}

TEST(LayerGraphsTest, AGraphIsLaunchedOnce) {
  const GptModel model = Model(4, false);
  const auto one_by_one = LaunchesOf(model, Launched(false, false, false));
  const auto attention = LaunchesOf(model, Launched(true, false, false));
  const auto both = LaunchesOf(model, Launched(true, true, false));
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const int32_t layer : {1, 2}) {
      EXPECT_EQ(both.at({layer, phase}), 2);
      EXPECT_GT(attention.at({layer, phase}), 2);
      EXPECT_GT(one_by_one.at({layer, phase}), attention.at({layer, phase}) + 3);
    }
  }
}

TEST(LayerGraphsTest, ExpertsAreLaunchedOneByOneAllTheSame) {
  const GptModel model = Model(4, true);
  const auto one_by_one = LaunchesOf(model, Launched(false, false, false));
  const auto graphs = LaunchesOf(model, Launched(true, true, true));
  // Two linears of four experts each, besides the two graphs.
  EXPECT_GE(graphs.at({2, Phase::kForward}), 2 + 2 * 4);
  EXPECT_LT(graphs.at({2, Phase::kForward}), one_by_one.at({2, Phase::kForward}) - 8);
}

}  // namespace layer_graphs_test
}  // namespace rehearse
