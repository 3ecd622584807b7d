// A scenario's "search": the space that is searched.
#include "scenarios/searching/search_space.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void ReadSearch(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, SourceDir() + "/scenarios/fuzz.json");
  if (!document.value().is_object()) return;  // it has been read as a scenario before
  const SearchSpace space = ReadSpace(document, 16);
  if (space.Size() < 1) return;
  const SpacePoint point = space.PointAt(0);
  space.ChangesOf(point);
  space.NameOf(point);
  space.Broken(document.value());
}

std::vector<std::string> SearchSeeds() {
  std::vector<std::string> seeds = SmallScenarios();
  for (const std::string& text : ShippedTexts("scenarios", ".json")) {
    if (text.find("\"search\"") != std::string::npos) seeds.push_back(text);
  }
  return seeds;
}

std::vector<std::string> SearchWords() { return SchemaWords("scenario"); }

const FuzzTargetRow kSearchRow({"search", ReadSearch, SearchSeeds, SearchWords,
                                FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
