#include "scenarios/searching/search_space.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace search_space_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SearchSpace SpaceOf(const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadSpace(document, 8);
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    SpaceOf(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> AxisNames(const SearchSpace& space) {
  std::vector<std::string> names;
  for (const SpaceAxis& axis : space.axes) names.push_back(axis.name);
  return names;
}

TEST(FactorisationsTest, AreAllWaysToWriteAProduct) {
  EXPECT_THAT(Factorisations(4, 2),
              ElementsAre(ElementsAre(4u, 1u), ElementsAre(2u, 2u), ElementsAre(1u, 4u)));
  // 2^10 into four factors: (10 + 3 choose 3), the number of grids of GPT-80B on 1,024 GPUs. 36 =
  // 2²·3² in three: (2 + 2 choose 2)² = 36.
  EXPECT_EQ(Factorisations(1024, 4).size(), 286u);
  EXPECT_EQ(Factorisations(36, 3).size(), 36u);
  std::set<std::vector<uint32_t>> distinct;
  for (const std::vector<uint32_t>& numbers : Factorisations(36, 3)) {
    EXPECT_EQ(numbers[0] * numbers[1] * numbers[2], 36u);
    distinct.insert(numbers);
  }
  EXPECT_EQ(distinct.size(), 36u);
}

TEST(SearchSpaceTest, IsByDefaultAllGridsTimesMicroBatches) {
  const SearchSpace space = SpaceOf();
  // 8 = 2³ in four: 20 grids; the divisors of a batch of 8.
  EXPECT_THAT(AxisNames(space), ElementsAre("column x row x depth x data", "micro_batches"));
  EXPECT_EQ(space.axes[0].choices.size(), 20u);
  EXPECT_EQ(space.axes[1].choices.size(), 4u);
  EXPECT_EQ(space.Size(), 80);
  EXPECT_EQ(space.NameOf(space.PointAt(1)), "column 8 row 1 depth 1 data 1, micro_batches 2");
  EXPECT_EQ(space.PointAt(79), (SpacePoint{19, 3}));
}

TEST(SearchSpaceTest, EveryKindOfStrategyHasItsOwnAxes) {
  const auto sizes = [](const std::string& strategy, const std::string& more = "") {
    std::vector<std::string> changes = {"strategy=" + strategy};
    if (!more.empty()) changes.push_back(more);
    return SpaceOf(changes).axes.front().choices.size();
  };
  EXPECT_EQ(sizes(R"({"kind": "megatron", "tensor": 8, "data": 1, "sequence_parallel": true,
      "overlap_all_reduce": true, "overlap_gradients": true, "distributed_optimizer": false})"),
            4u);
  EXPECT_EQ(sizes(R"({"kind": "zero-1", "shard": 8, "replicas": 1, "overlap_gradients": true})"),
            4u);
  EXPECT_EQ(sizes(R"({"kind": "atp", "d1": 2, "d2": 4, "data": 1, "first": "column", "chunks": 1,
      "overlap_all_reduce": true})"),
            10u);
  // q = 1: 4 ways for 8 = depth · data; q = 2: 2 ways for 2.
  EXPECT_EQ(sizes(R"({"kind": "summa", "q": 2, "depth": 2, "data": 1, "overlap_panels": true})"),
            6u);
  // Only what the scenario names: tensor and data.
  EXPECT_EQ(sizes(R"({"kind": "combined", "tensor": 2, "data": 4, "sequence_parallel": true,
      "overlap_all_reduce": true, "overlap_gradients": true})"),
            4u);
  // 2 machines of 4 ranks: 3 · 6 ways to place "default".
  EXPECT_EQ(sizes(R"({"kind": "sbp", "nodes": 2, "gpus": 4, "overlap_all_reduce": true,
      "overlap_gradients": true, "products": {"default": [[2, 1], [1, 4], 1]}})"),
            18u);
  // ... of which p0, machines by ranks, is more than 2 in 2x4, 2x2 (2 ways) and 1x4 (2 ways).
  EXPECT_EQ(sizes(R"({"kind": "sbp", "nodes": 2, "gpus": 4, "overlap_all_reduce": true,
      "overlap_gradients": true, "products": {"default": [[2, 1], [1, 4], 1]}})",
                  R"(search={"most_p0": 2})"),
            13u);
  // With stages of a pipeline: 8 in three.
  EXPECT_EQ(sizes(R"({"kind": "megatron", "tensor": 4, "data": 1, "sequence_parallel": true,
      "overlap_all_reduce": true, "overlap_gradients": true, "distributed_optimizer": false})",
                  R"(pipeline={"stages": 2, "schedule": "1f1b"})"),
            10u);
}

TEST(SearchSpaceTest, DeclaredAxesComeBesideTheDefaultOnesOrInTheirPlace) {
  EXPECT_THAT(
      AxisNames(SpaceOf({R"(search={"axes": [
      {"path": "training.recomputation", "values": ["none", "full"]}]})"})),
      ElementsAre("column x row x depth x data", "training.recomputation", "micro_batches"));
  EXPECT_THAT(AxisNames(SpaceOf({R"(search={"axes": [
      {"path": "training.micro_batches", "values": [2]},
      {"factors": ["strategy.column", "strategy.row"], "of": 4}]})"})),
              ElementsAre("training.micro_batches", "column x row"));
  EXPECT_THAT(AxisNames(SpaceOf({R"(search={"default_axes": false, "axes": [
      {"choices": [{"name": "wide", "set": {"strategy.column": 8}}]}]})"})),
              ElementsAre("wide"));
}

TEST(SearchSpaceTest, OnlySbpHasAP0) { EXPECT_THROW(SpaceOf({R"(search={"most_p0": 2})"}), Error); }

TEST(SearchSpaceTest, ClustersMayDifferInSize) {
  const SearchSpace space = SpaceOf({R"(search={"axes": [
      {"path": "cluster", "values": ["perlmutter:nodes=1", "perlmutter:nodes=2"]}]})"});
  // 4 = 2² in four: 10 grids; 8: 20.
  EXPECT_EQ(space.axes[0].choices.size(), 30u);
}

TEST(SearchSpaceTest, ConstraintsAreOfProducts) {
  const SearchSpace space = SpaceOf({R"(search={"where": [
      {"product": ["strategy.column", "strategy.row"], "at_most": 4},
      {"product": ["strategy.depth"], "divides": 4}]})"});
  const auto broken = [&](const char* scenario) {
    return space.Broken(nlohmann::json::parse(scenario)).value_or("nothing");
  };
  EXPECT_EQ(broken(R"({"strategy": {"column": 2, "row": 2, "depth": 4}})"), "nothing");
  EXPECT_EQ(broken(R"({"strategy": {"column": 4, "row": 2, "depth": 4}})"),
            "strategy.column * strategy.row is at most 4");
  EXPECT_EQ(broken(R"({"strategy": {"column": 4, "depth": 8}})"), "strategy.depth divides 4");
  EXPECT_EQ(broken(R"({"strategy": {"column": 4, "depth": 0}})"), "strategy.depth divides 4");
}

TEST(SearchSpaceTest, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf({R"(search={"axes": [{"path": "training.batch", "values": []}]})"}),
              AllOf(HasSubstr("/search/axes/0"), HasSubstr("needs choices")));
  EXPECT_THAT(ErrorOf({R"(search={"axes": [{"path": "search.seed", "values": [1]}]})"}),
              HasSubstr("a search does not change itself"));
  EXPECT_THAT(ErrorOf({R"(search={"default_axes": false})"}), HasSubstr("nothing to choose from"));
  EXPECT_THAT(ErrorOf({R"(search={"where": [{"product": ["strategy.row"]}]})"}),
              HasSubstr("expected \"equals\", \"at_least\", \"at_most\" or \"divides\""));
  EXPECT_THAT(ErrorOf({R"(search={"axis": []})"}), HasSubstr("did you mean \"axes\""));
}

}  // namespace search_space_test
}  // namespace rehearse
