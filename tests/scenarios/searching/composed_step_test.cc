#include "scenarios/searching/composed_step.h"

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

}  // namespace composed_step_test
}  // namespace rehearse
