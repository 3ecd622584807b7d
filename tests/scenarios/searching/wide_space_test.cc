#include "scenarios/searching/wide_space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/searching/best_scenario.h"
#include "scenarios/searching/composed_step.h"
#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/search.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace wide_space_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kOpen = R"({
  "name": "open", "cluster": "dgx-a100:nodes=2", "model": {"preset": "gpt-1.3b"},
  "training": {"batch": 32, "sequence": 2048}
})";

Search SearchOf(const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromText(kOpen, "open.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadSearch(document);
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    RunSearch(SearchOf(changes), {.threads = 1});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> AxesOf(const Search& search) {
  std::vector<std::string> names;
  for (const SpaceAxis& axis : search.space.axes) names.push_back(axis.name);
  return names;
}

TEST(WideSpaceTest, HasAllThatAFrameworkLetsOneChoose) {
  EXPECT_THAT(AxesOf(SearchOf()),
              ElementsAre("tensor x context x shard x replicas x stages", "schedule",
                          "sequence_parallel", "zero", "micro-batch", "recomputation", "products"));
  EXPECT_THAT(AxesOf(SearchOf({R"(model={"preset": "mixtral-8x7b"})"})),
              ElementsAre("tensor x context x shard x replicas x stages", "expert x expert_tensor",
                          "schedule", "pairs", "dispatcher", "sequence_parallel", "zero",
                          "micro-batch", "recomputation", "products"));
}

// What the scenario says about pairs, tokens' ways and multiprocessors stays.
TEST(WideSpaceTest, LeavesWhatTheScenarioSaysOfExperts) {
  const std::string experts = R"(model={"preset": "mixtral-8x7b"})";
  const auto pairs_of = [](const Search& search) {
    std::vector<std::string> names;
    for (const SpaceAxis& axis : search.space.axes)
      if (axis.name == "pairs")
        for (const SpaceChoice& choice : axis.choices) names.push_back(choice.name);
    return names;
  };
  EXPECT_THAT(pairs_of(SearchOf({experts})),
              ElementsAre("no pairs", "pairs", "pairs beside 20 multiprocessors"));
  EXPECT_THAT(pairs_of(SearchOf({experts, "simulator.communication_multiprocessors=8"})),
              ElementsAre("no pairs", "pairs"));
  EXPECT_THAT(pairs_of(SearchOf({experts, R"(pipeline={"stages": 2, "schedule": "1f1b",
                                             "pair_passes": true})"})),
              ElementsAre());
  EXPECT_THAT(AxesOf(SearchOf({experts, "simulator.algorithm=\"ring\""})),
              ::testing::Not(::testing::Contains("dispatcher")));
}

TEST(WideSpaceTest, LeavesWhatTheScenarioSays) {
  const Search search =
      SearchOf({"training.recomputation=\"full\"", "training.products=\"plain\"",
                "training.micro_batches=4", R"(pipeline={"stages": 2, "schedule": "1f1b"})"});
  EXPECT_THAT(AxesOf(search), ElementsAre("tensor x context x shard x replicas x stages",
                                          "sequence_parallel", "zero"));
  for (const SpaceChoice& choice : search.space.axes.front().choices)
    EXPECT_EQ(choice.changes.back().second, 2) << choice.name;
}

// Of 72 GPUs a rack, all, or 64 of each.
TEST(WideSpaceTest, UsesAsManyGpusAsMachinesDivideEvenly) {
  const auto racks = ReadClusterArgument("gb200-nvl72:racks=3");
  EXPECT_THAT(RankCounts(*racks, UINT32_MAX), ElementsAre(216, 192, 128));
  EXPECT_THAT(RankCounts(*racks, 128), ElementsAre(128, 72));
  const auto boxes = ReadClusterArgument("dgx-h100:nodes=4");
  EXPECT_THAT(RankCounts(*boxes, UINT32_MAX), ElementsAre(32));
  EXPECT_THAT(RankCounts(*boxes, 8), ElementsAre(8));
}

TEST(WideSpaceTest, ScenariosOfItsPointsArePlayedWithoutASearch) {
  const Search search = SearchOf();
  const FoundPoints found = RunSearch(search, {.threads = 2});
  ASSERT_TRUE(found.points.front().simulated.has_value());
  const JsonDocument best = ScenarioOf(search, found.points.front().point);
  EXPECT_FALSE(best.value().contains("search"));
  EXPECT_TRUE(best.value()["training"].contains("micro_batches"));
  EXPECT_FALSE(best.value()["training"].contains("micro_batch_size"));
  Engine engine({.hash = false});
  const Result result = engine.Play(engine.Read(best));
  EXPECT_EQ(result.step, found.points.front().simulated->step);
}

TEST(WideSpaceTest, MistakesHaveOneMessage) {
  EXPECT_THAT(ErrorOf({R"(model={"kind": "vgg", "preset": "vgg-13"})", "training={\"batch\": 32}"}),
              HasSubstr("/model: only decoders have configurations that a search knows by itself"));
  EXPECT_THAT(ErrorOf({"search.gpus=0"}), HasSubstr("/search/gpus"));
  EXPECT_THAT(ErrorOf({"search.gpus=8", "placement=\"0-7\""}),
              HasSubstr("/search/gpus: the scenario has a \"placement\""));
  EXPECT_THAT(
      ErrorOf({"search.formula=\"composed\"", "search.objective=\"breakdown.idle_seconds\""}),
      HasSubstr("/search/formula"));
  EXPECT_THAT(ErrorOf({"training.batch=0"}), HasSubstr("/training/batch"));
  // What lacks memory comes first, though most are other orders of the same.
  EXPECT_THAT(ErrorOf({"model={\"preset\": \"llama-3-405b\"}"}),
              ::testing::ContainsRegex("points is possible; [0-9]+ of them: out of memory"));
}

TEST(WideSpaceTest, CostsOfTheScenarioCount) {
  const Search search =
      SearchOf({"search.objective=\"money\"", "cluster=\"dgx-h100\"", "training.micro_batch_size=1",
                "training.products=\"plain\"", "training.recomputation=\"none\"",
                R"(pipeline={"stages": 1, "schedule": "1f1b"})",
                R"(costs={"gpu": "30000USD", "years": "4 years"})"});
  EXPECT_EQ(search.formula, FormulaKind::kClosedForms);
}

// With a strategy, too.
TEST(WideSpaceTest, AtMostSoManyGpusAreUsed) {
  const std::string strategy =
      R"(strategy={"kind": "megatron", "tensor": 2, "data": 8, "sequence_parallel": false,
                   "overlap_all_reduce": true, "overlap_gradients": false,
                   "distributed_optimizer": false})";
  const Search search = SearchOf({strategy, "training.recomputation=\"full\"", "search.gpus=4"});
  for (const SpaceChoice& choice : search.space.axes.front().choices)
    EXPECT_EQ(choice.changes[0].second.get<uint32_t>() * choice.changes[1].second.get<uint32_t>(),
              4u)
        << choice.name;
  EXPECT_THAT(ErrorOf({strategy, "training.recomputation=\"full\"", "search.gpus=4",
                       "search.default_axes=false",
                       R"(search.axes=[{"path": "training.micro_batches", "values": [1, 2]}])"}),
              HasSubstr("/search/gpus: no axis of this search divides the ranks"));
}

// When early simulations run depends on time, and nothing that is found does.
TEST(WideSpaceTest, EarlySimulationsDoNotCount) {
  const Search search = SearchOf({"training.micro_batch_size=1", "training.products=\"plain\"",
                                  "training.recomputation=\"none\""});
  const SearchRun run;
  PointEvaluator evaluator(search, run);
  const FoundPoints found = RunSearch(search, {.threads = 2});
  const SpacePoint& best = found.points.front().point;
  EXPECT_TRUE(evaluator.SimulateEarly(best));
  EXPECT_FALSE(evaluator.IsSimulated(best));
  EXPECT_FALSE(evaluator.Best().has_value());
  EXPECT_EQ(evaluator.Simulate(best)->front(), found.points.front().simulated->values.front());
  EXPECT_TRUE(evaluator.IsSimulated(best));
}

// What is told from sizes alone is what planning would find.
TEST(WideSpaceTest, ExpertsNeedTokensOfTheirOwn) {
  const Search search = SearchOf({R"(model={"preset": "mixtral-8x7b"})", "search.gpus=8"});
  Engine engine({.hash = false});
  const ComposedSteps composed(search.space, search.scenario, true, search.MostRanks(), &engine);
  ASSERT_TRUE(composed.is_known());
  const auto size = static_cast<size_t>(search.space.Size());
  size_t seen = 0;
  for (size_t i = 0; i < size && seen < 20; i += 7) {
    const SpacePoint point = search.space.PointAt(i);
    const std::string* reason = composed.Excluded(point);
    if (reason == nullptr || reason->find("the same tokens") == std::string::npos) continue;
    ++seen;
    EXPECT_THAT(engine.ErrorOf(ScenarioOf(search, point)), HasSubstr("have the same tokens"));
  }
  EXPECT_EQ(seen, 20);
}

// Ranks do not share sequences of latent attention.
TEST(WideSpaceTest, LatentAttentionHasNoContext) {
  const Search search = SearchOf({R"(model={"preset": "deepseek-v3"})"});
  for (const SpaceChoice& choice : search.space.axes.front().choices)
    EXPECT_THAT(choice.name, ::testing::Not(HasSubstr("context")));
}

// A walk of few looks passes by what is good. What was found for one machine and would be better on
// another than what was found there is found there, too.
TEST(WideSpaceTest, NoBestIsBetterElsewhere) {
  Engine engine({.hash = false});
  for (int seed = 1; seed <= 3; ++seed) {
    const Search search = SearchOf({R"(model={"preset": "mixtral-8x7b"})",
                                    fmt::format(R"(search={{"axes": [{{"path": "cluster",
                                            "values": ["dgx-h100:nodes=2", "dgx-h200:nodes=2"]}}],
                               "per": "cluster", "method": "descent", "starts": 1,
                               "evaluations": 4, "keep_at_least": 1, "seed": {}}})",
                                                seed)});
    const FoundPoints found = RunSearch(search, {.threads = 2});
    ASSERT_EQ(found.groups.size(), 2u);
    if (!found.groups[0].best || !found.groups[1].best) continue;  // nothing of so few fits
    for (uint32_t choice = 0; choice < 2; ++choice) {
      const FoundPoint& own = found.points[found.groups[choice].best.value()];
      SpacePoint other = found.points[found.groups[1 - choice].best.value()].point;
      other[*search.per_axis] = choice;
      const JsonDocument there = ScenarioOf(search, other);
      if (!engine.ErrorOf(there).empty()) continue;
      EXPECT_GE(engine.Play(engine.Read(there)).step, 0.99 * own.simulated->step) << seed;
    }
  }
}

TEST(WideSpaceTest, WantsACluster) {
  const JsonDocument document = JsonDocument::FromText(
      R"({"model": {"preset": "gpt-1.3b"}, "training": {"batch": 32, "sequence": 2048}})",
      "a.json");
  try {
    ReadSearch(document);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing key \"cluster\"; expected one, or --clusters"));
  }
}

// The same with all points played: nothing better was left out. Ten small spaces.
struct SmallSpace {
  const char* name;
  std::vector<std::string> changes;
};
class RegretTest : public ::testing::TestWithParam<SmallSpace> {};

TEST_P(RegretTest, IsZero) {
  const FoundPoints found = RunSearch(SearchOf(GetParam().changes), {.threads = 2});
  std::vector<std::string> all = GetParam().changes;
  all.emplace_back("search.decide=\"simulation\"");
  all.emplace_back("search.method=\"exhaustive\"");
  const Search search = SearchOf(all);
  const FoundPoints exhaustive = RunSearch(search, {.threads = 2});
  const FoundPoint& best = exhaustive.points.front();
  EXPECT_EQ(found.points.front().simulated->step, best.simulated->step)
      << "best: " << search.space.NameOf(best.point)
      << "\nfound: " << search.space.NameOf(found.points.front().point) << "\nsimulated "
      << found.simulated << " of " << exhaustive.simulated;
}

const char* const kOneBatch = "training.micro_batch_size=1";
const char* const kPlain = "training.products=\"plain\"";
INSTANTIATE_TEST_SUITE_P(
    Small, RegretTest,
    ::testing::Values(
        SmallSpace{"OneBox",
                   {"cluster=\"dgx-a100\"", kOneBatch, kPlain, "training.recomputation=\"none\""}},
        SmallSpace{"TwoBoxes", {kOneBatch, "training.recomputation=\"none\""}},
        SmallSpace{"H100", {"cluster=\"dgx-h100\"", kOneBatch, "training.recomputation=\"none\""}},
        SmallSpace{"LargerModel",
                   {"cluster=\"dgx-a100\"", "model={\"preset\": \"gpt-13b\"}", kOneBatch,
                    "training.recomputation=\"full\""}},
        SmallSpace{"NoNvLink",
                   {"cluster=\"atp-ic2\"", kOneBatch, "training.recomputation=\"none\""}},
        SmallSpace{"LongSequences",
                   {"cluster=\"dgx-h100\"", "model={\"preset\": \"llama-3-8b\"}",
                    "training={\"batch\": 16, \"sequence\": 16384}", kOneBatch, kPlain,
                    "training.recomputation=\"full\""}},
        SmallSpace{"Experts",
                   {"cluster=\"dgx-h100\"", "model={\"preset\": \"deepseek-v2-lite\"}",
                    "training={\"batch\": 16, \"sequence\": 4096}", kOneBatch, kPlain,
                    "training.recomputation=\"full\"", "simulator.collectives=[]"}},
        SmallSpace{"FewMicroBatches",
                   {"training.batch=16", kPlain, "training.recomputation=\"full\""}},
        SmallSpace{"SlowNetwork",
                   {"cluster=\"dgx-a100:nodes=2,nics=1\"", kOneBatch,
                    "training.recomputation=\"selective\""}},
        SmallSpace{"Llama8b",
                   {"cluster=\"dgx-h100:nodes=2\"", "model={\"preset\": \"llama-3-8b\"}",
                    "training={\"batch\": 32, \"sequence\": 4096}", kOneBatch, kPlain,
                    "training.recomputation=\"none\""}}),
    [](const auto& info) { return info.param.name; });

// Pairs, ways of tokens and multiprocessors, of Qwen3's experts on two boxes.
constexpr const char* kPairs = R"({
  "name": "pairs", "cluster": "dgx-h800:nodes=2", "model": {"preset": "qwen3-30b-a3b", "layers": 8},
  "training": {"batch": 128, "sequence": 4096, "recomputation": "none", "products": "plain",
               "micro_batch_size": 1},
  "software": "megatron-core",
  "search": {"where": [{"product": ["strategy.tensor", "strategy.zero", "strategy.replicas"],
                        "equals": 1},
                       {"product": ["strategy.expert"], "at_least": 8}]}
})";

// What a search says of a point is what its scenario is played as; the best is the best of all,
// and hides tokens in pairs.
TEST(PairsInSearchesTest, TheBestIsThatOfAll) {
  JsonDocument document = JsonDocument::FromText(kPairs, "pairs.json");
  const FoundPoints found = RunSearch(ReadSearch(document), {.threads = 2});
  document.Set("search.decide=\"simulation\"");
  document.Set("search.method=\"exhaustive\"");
  const Search search = ReadSearch(document);
  const FoundPoints all = RunSearch(search, {.threads = 2});
  EXPECT_GT(all.simulated, 40u);
  EXPECT_EQ(found.points.front().simulated->step, all.points.front().simulated->step)
      << search.space.NameOf(found.points.front().point);
  EXPECT_THAT(search.space.NameOf(all.points.front().point), HasSubstr(", pairs"));
  Engine engine({.hash = false});
  for (size_t i = 0; i < all.points.size(); i += 3) {
    const FoundPoint& point = all.points[i];
    if (!point.simulated) continue;
    const Result result = engine.Play(engine.Read(ScenarioOf(search, point.point)));
    EXPECT_EQ(result.step, point.simulated->step) << search.space.NameOf(point.point);
  }
}

// What is told from sizes alone is what planning would find.
TEST(PairsInSearchesTest, WhatIsLeftOutIsImpossible) {
  JsonDocument document = JsonDocument::FromText(kPairs, "pairs.json");
  document.Set("training.batch=32");
  const Search search = ReadSearch(document);
  Engine engine({.hash = false});
  const ComposedSteps composed(search.space, search.scenario, true, search.MostRanks(), &engine);
  ASSERT_TRUE(composed.is_known());
  size_t seen = 0;
  for (uint64_t i = 0; i < static_cast<uint64_t>(search.space.Size()); ++i) {
    const SpacePoint point = search.space.PointAt(i);
    const std::string* const reason = composed.Excluded(point);
    if (reason == nullptr) continue;
    const bool is_of_order = reason->find("fewer micro-batches than two") != std::string::npos ||
                             reason->find("an odd number of stages") != std::string::npos ||
                             reason->find("too few micro-batches") != std::string::npos;
    if (!is_of_order || ++seen % 11 != 0) continue;
    EXPECT_NE(engine.ErrorOf(ScenarioOf(search, point)), "") << search.space.NameOf(point);
  }
  EXPECT_GT(seen, 50u);
}

TEST(PairsInSearchesTest, MistakesHaveOneMessage) {
  const auto error_with = [](const std::string& axis) {
    return ErrorOf({R"(model={"preset": "mixtral-8x7b", "layers": 4})", "cluster=\"dgx-h800\"",
                    "training.micro_batches=4", "training.recomputation=\"full\"",
                    R"(strategy={"kind": "combined", "shard": 4, "zero": 1, "expert": 4,
                        "overlap_gradients": true, "overlap_parameter_gathers": false})",
                    R"(pipeline={"stages": 2, "schedule": "1f1b"})", "search.default_axes=false",
                    "search.axes=[" + axis + "]"});
  };
  EXPECT_THAT(error_with(R"({"path": "simulator.communication_multiprocessors",
                             "values": [200]})"),
              HasSubstr("found 200, expected fewer than the 132"));
  EXPECT_THAT(error_with(R"({"choices": [{"name": "a", "set": {"pipeline.pair_passes": true,
                             "pipeline.pair_order": ["F.attention", "F.experts", "F.dispatch",
                             "F.combine", "I.combine", "I.experts", "I.dispatch",
                             "I.attention"]}}]})"),
              HasSubstr("found F.experts next after F.attention, which a chunk cannot have"));
  EXPECT_THAT(error_with(R"({"choices": [{"name": "a", "set": {"pipeline.pair_passes": true,
                             "pipeline.schedule": "gpipe"}}]})"),
              HasSubstr("no rank has forward passes with other micro-batches' backward passes"));
  EXPECT_THAT(error_with(R"({"path": "pipeline.pair_order", "values": ["dualpipe"]})"),
              HasSubstr("is the order of pairs; expected \"pair_passes\": true"));
}

TEST(BestScenarioTest, SaysWhatWasFound) {
  const std::string text = BestScenario({.cluster = "dgx-a100", .model = "gpt-1.3b"});
  EXPECT_THAT(text, HasSubstr("// The best that \"rehearse init\" found"));
  const JsonDocument document = JsonDocument::FromText(text, "best.json");
  Engine engine({.hash = false});
  EXPECT_GT(engine.Play(engine.Read(document)).tokens_per_second, 0);
}

}  // namespace wide_space_test
}  // namespace rehearse
