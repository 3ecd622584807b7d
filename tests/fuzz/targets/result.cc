// A result's file, compared with itself, and read as a kept point's.

#include "sim/report/result.h"

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/report/comparison.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void ReadResultText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "result.json");
  if (document.value().is_object())
    ResultsOf(nlohmann::ordered_json::parse(document.value().dump()));
  ToText(CompareResults(document.Root(), document.Root()), false);
}

std::vector<std::string> ResultSeeds() {
  std::vector<std::string> seeds;
  for (const std::string& text : SmallScenarios()) {
    const Scenario scenario =
        ReadScenario(JsonDocument::FromText(text, SourceDir() + "/scenarios/small.json"));
    seeds.push_back(ToJson(Rehearse(scenario).result).dump(1));
  }
  return seeds;
}

std::vector<std::string> ResultWords() { return SchemaWords("result"); }

const FuzzTargetRow kResultRow({"result", ReadResultText, ResultSeeds, ResultWords,
                                FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
