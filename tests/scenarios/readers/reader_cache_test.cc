#include "scenarios/readers/reader_cache.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"
#include "scenarios/readers/scenario.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/temporary_folder.h"

namespace rehearse {
namespace reader_cache_test {

JsonDocument Small(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return document;
}

std::shared_ptr<const Network> NetworkOf(const std::vector<std::string>& changes,
                                         ReaderCache* cache) {
  return std::get<Workload>(ReadScenario(Small(changes), cache).jobs.front().work).network;
}

TEST(ReaderCacheTest, GridsOfOneModelHaveOneNetwork) {
  ReaderCache cache;
  const auto network = NetworkOf({}, &cache);
  EXPECT_EQ(NetworkOf({"strategy.column=4", "strategy.row=1"}, &cache), network);
  EXPECT_NE(NetworkOf({"training.micro_batches=2"}, &cache), network);
  EXPECT_NE(NetworkOf({"model.layers=3"}, &cache), network);
  EXPECT_NE(NetworkOf({"training.attention=\"unfused\""}, &cache), network);
  EXPECT_EQ(NetworkOf({}, &cache), network);
  EXPECT_NE(NetworkOf({}, nullptr), network);
}

// Its file may have changed.
TEST(ReaderCacheTest, AModelFromAFileIsReadEachTime) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.json";
  std::ofstream(path) << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 1024, "n_head": 16,
                             "vocab_size": 4096})";
  ReaderCache cache;
  const std::string model = R"(model={"file": ")" + path + "\"}";
  const auto network = NetworkOf({model}, &cache);
  EXPECT_NE(NetworkOf({model}, &cache), network);
}

// ... to the last bit, whatever was read and played before.
TEST(ReaderCacheTest, WhatIsSharedMakesNoDifference) {
  Engine engine({.hash = true});
  for (const char* layers : {"2", "12"}) {
    for (const char* grid : {"[1, 1, 8]", "[2, 2, 2]", "[8, 1, 1]", "[2, 4, 1]", "[2, 2, 2]"}) {
      const auto sizes = nlohmann::json::parse(grid);
      const JsonDocument document =
          Small({std::string("model.layers=") + layers, "strategy.cached_layers=0",
                 "strategy.column=" + sizes[0].dump(), "strategy.row=" + sizes[1].dump(),
                 "strategy.depth=" + sizes[2].dump()});
      const Result shared = engine.EvaluateApart({document}).results.at(0);
      const Result alone = Rehearse(ReadScenario(document)).result;
      EXPECT_EQ(shared.timeline_hash, alone.timeline_hash) << layers << " layers, " << grid;
      EXPECT_EQ(shared.step.value(), alone.step.value()) << layers << " layers, " << grid;
      EXPECT_EQ(shared.memory.Total().value(), alone.memory.Total().value());
    }
  }
}

}  // namespace reader_cache_test
}  // namespace rehearse
