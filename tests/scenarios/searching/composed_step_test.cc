#include "scenarios/searching/composed_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/searching/search.h"

namespace rehearse {
namespace composed_step_test {

// Mixtral in stages, its experts updated in shares (ZeRO-1).
constexpr const char* kStages = R"({
  "name": "stages", "cluster": "dgx-h100:nodes=8", "software": "nemo", "placement": "block",
  "model": {"preset": "mixtral-8x7b"},
  "training": {"batch": 128, "sequence": 512, "micro_batches": 8, "recomputation": "none"},
  "strategy": {"kind": "combined", "tensor": 1, "shard": 16, "replicas": 1, "expert": 8, "zero": 1},
  "pipeline": {"stages": 4, "schedule": "1f1b"},
  "search": {"axes": [{"path": "training.micro_batches", "values": [4, 8]}],
             "default_axes": false, "formula": "composed", "decide": "simulation"}
})";

// The formula's step over the simulated one, for each number of micro-batches.
std::vector<double> FormulaOverSimulation(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(kStages, "stages.json");
  for (const std::string& change : changes) document.Set(change);
  const Search search = ReadSearch(document);
  std::vector<double> ratios;
  for (const FoundPoint& point : RunSearch(search, {.threads = 1, .all_formulas = true}).points)
    ratios.push_back(point.formula.value() / point.simulated.value().values.front());
  return ratios;
}

// Each stage gathers its experts over two boxes when its first micro-batch comes, so all of them
// are waited for in turn: met once, they would be 16 and 25 % of the step too little.
TEST(ComposedStepsTest, StagesWaitInTurnForWhatTheyGather) {
  const std::vector<double> ratios = FormulaOverSimulation({});
  ASSERT_EQ(ratios.size(), 2u);
  for (const double ratio : ratios) EXPECT_NEAR(ratio, 1, 0.13);
}

// With 128 tokens a sequence, kernels wait for the host, but not while the pipeline fills and
// drains: without that, 16 and 43 % too much.
TEST(ComposedStepsTest, HostsGetAheadWhileStagesWait) {
  const std::vector<double> ratios =
      FormulaOverSimulation({"training.sequence=128", "pipeline.stages=8", "strategy.shard=8"});
  ASSERT_EQ(ratios.size(), 2u);
  for (const double ratio : ratios) EXPECT_NEAR(ratio, 1, 0.13);
}

// Qwen3's experts over four boxes, whose all-to-alls pairs hide.
constexpr const char* kPairs = R"({
  "name": "pairs", "cluster": "dgx-h800:nodes=8", "placement": "block",
  "model": {"preset": "qwen3-30b-a3b"},
  "training": {"batch": 1024, "sequence": 4096, "micro_batches": 16, "recomputation": "none"},
  "strategy": {"kind": "combined", "tensor": 1, "shard": 32, "replicas": 1, "expert": 32, "zero": 1,
               "overlap_gradients": true, "overlap_parameter_gathers": true},
  "pipeline": {"stages": 2, "schedule": "1f1b", "split": "flops"},
  "simulator": {"collectives": [{"kind": "all-to-all", "algorithm": "deepep"}]},
  "memory": {"allow_oom": true},
  "search": {"axes": [{"choices": [
               {"name": "apart", "set": {"pipeline.pair_passes": false}},
               {"name": "turns", "set": {"pipeline.pair_passes": true}},
               {"name": "table", "set": {"pipeline.pair_passes": true,
                                         "pipeline.pair_order": "megatron-core"}},
               {"name": "beside 20", "set": {"pipeline.pair_passes": true,
                                             "simulator.communication_multiprocessors": 20}}]}],
             "default_axes": false, "formula": "composed", "decide": "simulation"}
})";

// At most 14 % off (DualPipeV in turns), where pairs hide a third of the step.
TEST(ComposedStepsTest, PairsHideTokens) {
  for (const auto& [stages, schedule] : {std::pair(1, "1f1b"),
                                         {2, "1f1b"},
                                         {4, "1f1b"},
                                         {4, "interleaved"},
                                         {4, "dualpipe"},
                                         {4, "dualpipev"}}) {
    JsonDocument document = JsonDocument::FromText(kPairs, "pairs.json");
    document.Set(fmt::format("pipeline.stages={}", stages));
    document.Set(fmt::format("strategy.shard={}", 64 / stages));
    document.Set(fmt::format("strategy.expert={}", 64 / stages));
    document.Set(fmt::format("pipeline.schedule=\"{}\"", schedule));
    const Search search = ReadSearch(document);
    const FoundPoints found =
        RunSearch(search, {.threads = 1, .all_formulas = true, .allow_out_of_memory = true});
    ASSERT_EQ(found.points.size(), 4u);
    for (const FoundPoint& point : found.points)
      EXPECT_NEAR(point.formula.value() / point.simulated.value().values.front(), 1, 0.15)
          << stages << " stages, " << schedule << ", " << search.space.NameOf(point.point);
  }
}

}  // namespace composed_step_test
}  // namespace rehearse
