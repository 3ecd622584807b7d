// A scenario's file: what `rehearse run` reads before it plans.
#include "scenarios/readers/scenario.h"

#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void ReadScenarioText(std::string_view input) {
  if (NamesALargeMachine(input)) return;
  ReadScenario(JsonDocument::FromText(input, SourceDir() + "/scenarios/fuzz.json"));
}

std::vector<std::string> ScenarioSeeds() {
  std::vector<std::string> seeds = ShippedTexts("scenarios", ".json");
  for (std::string& lesson : ShippedTexts("scenarios/lessons", ".json"))
    seeds.push_back(std::move(lesson));
  return seeds;
}

std::vector<std::string> ScenarioWords() { return SchemaWords("scenario"); }

const FuzzTargetRow kScenarioRow({"scenario", ReadScenarioText, ScenarioSeeds, ScenarioWords,
                                  FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
