// A small scenario, read and planned: what is asked for may be impossible, never a fault of ours.
#include "scenarios/playing/prepare.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

// Layers, micro-batches and the like cost in proportion to their number, and so do ranks.
bool IsSmall(std::string_view input) {
  static const std::vector<std::string_view> words = {
      "layers", "micro_batches", "stages", "chunks",  "virtual", "batch",  "expert",
      "blocks", "repeat",        "levels", "channel", "metrics", "column", "row",
      "depth",  "data",          "tensor", "context", "mesh"};
  constexpr uint64_t kMost = 16;
  return !NamesALargeMachine(input) && !HasLarger(input, words, kMost) &&
         input.find("preset") == std::string_view::npos;
}

void PlanScenario(std::string_view input) {
  if (!IsSmall(input)) return;
  const Scenario scenario =
      ReadScenario(JsonDocument::FromText(input, SourceDir() + "/scenarios/fuzz.json"));
  uint32_t ranks = 0;
  for (const JobRequest& job : scenario.jobs)
    ranks += static_cast<uint32_t>(job.placement.size()) * job.repeat;
  constexpr uint32_t kMostRanks = 32;
  if (ranks <= kMostRanks) Prepare(scenario);
}

std::vector<std::string> PlanWords() { return SchemaWords("scenario"); }

const FuzzTargetRow kPlanRow({"scenario_plan", PlanScenario, SmallScenarios, PlanWords,
                              FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
