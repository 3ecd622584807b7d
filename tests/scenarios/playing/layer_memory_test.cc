#include "scenarios/playing/layer_memory.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/few_layers.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace layer_memory_test {

using rehearse::testing::ReadSmall;

std::shared_ptr<const Network> NetworkOf(const Scenario& scenario) {
  return std::get<Workload>(scenario.jobs.front().work).network;
}

// A step of equal layers.
Scenario WithLayers(int layers) {
  return ReadSmall({"model.layers=" + std::to_string(layers), "strategy.cached_layers=0"});
}

TEST(LayerMemoryTest, ANetworkIsComparedOnce) {
  LayerMemory memory;
  const auto network = NetworkOf(WithLayers(12));
  const auto begins = memory.Of(network);
  ASSERT_TRUE(begins->has_value());
  EXPECT_EQ((*begins)->size(), 13u);  // of 12 layers, and of what comes after them
  EXPECT_EQ(memory.Of(network), begins);
}

TEST(LayerMemoryTest, UnequalLayersAreRemembered) {
  Network network = *NetworkOf(WithLayers(12));
  network.matrices[network.matrices.size() / 2].k += 1;
  LayerMemory memory;
  EXPECT_FALSE(memory.Of(std::make_shared<const Network>(network))->has_value());
}

// More networks than it keeps, each asked about twice.
TEST(LayerMemoryTest, ManyNetworksAreToldApart) {
  LayerMemory memory;
  for (int round = 0; round < 2; ++round) {
    for (int layers = 8; layers < 20; ++layers) {
      const auto begins = memory.Of(NetworkOf(WithLayers(layers)));
      ASSERT_TRUE(begins->has_value());
      EXPECT_EQ((*begins)->size(), static_cast<size_t>(layers) + 1);
    }
  }
}

TEST(LayerMemoryTest, AStepIsTheSameWithIt) {
  const Scenario scenario = WithLayers(12);
  LayerMemory memory;
  std::optional<Result> with = RehearseFewLayers(scenario, {.layers = &memory});
  const std::optional<Result> without = RehearseFewLayers(scenario);
  ASSERT_TRUE(with.has_value() && without.has_value());
  with->simulator = without->simulator;
  EXPECT_EQ(ToJson(*with), ToJson(*without));
}

}  // namespace layer_memory_test
}  // namespace rehearse
