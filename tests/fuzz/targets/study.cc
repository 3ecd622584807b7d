// A study of `rehearse sweep`.
#include "scenarios/sweeping/study_reader.h"
#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void ReadStudyText(std::string_view input) {
  const JsonDocument document =
      JsonDocument::FromText(input, SourceDir() + "/scenarios/studies/fuzz.json");
  const Study study = ReadStudy(document);
  if (!study.points.empty()) ScenariosOf(study, study.points.front(), 1.5);
}

std::vector<std::string> StudySeeds() { return ShippedTexts("scenarios/studies", ".json"); }

std::vector<std::string> StudyWords() { return SchemaWords("study"); }

const FuzzTargetRow kStudyRow({"study", ReadStudyText, StudySeeds, StudyWords,
                               FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
