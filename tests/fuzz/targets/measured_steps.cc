// A table of measured steps, as `rehearse validate` reads it.
#include "scenarios/sweeping/validation.h"
#include "sim/base/csv_file.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void ReadMeasuredText(std::string_view input) {
  ReadValidationTable(ParseCsvFile(input, SourceDir() + "/scenarios/validation/fuzz.csv"), {});
}

std::vector<std::string> MeasuredSeeds() {
  // The first rows of each: the time to read a table grows with its rows.
  constexpr size_t kMost = 3000;
  std::vector<std::string> seeds;
  for (const std::string& text : ShippedTexts("scenarios/validation", ".csv"))
    seeds.push_back(text.substr(0, text.find('\n', std::min(kMost, text.size() - 1)) + 1));
  return seeds;
}

std::vector<std::string> MeasuredWords() {
  std::vector<std::string> words = {
      "name", "step", "tokens_per_second", "mfu", "memory", ",", "\n", "source", "group", "#",
      "\"",   "0.41"};
  for (const std::string& word : SchemaWords("scenario")) words.push_back(word);
  return words;
}

const FuzzTargetRow kMeasuredRow({"measured_steps", ReadMeasuredText, MeasuredSeeds,
                                  MeasuredWords});

}  // namespace
}  // namespace rehearse
