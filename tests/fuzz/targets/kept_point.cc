// A finished point in a folder of a sweep, damaged: it is simulated again, never believed.

#include "scenarios/evaluating/point_folder.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

constexpr const char* kHash = "0123456789abcdef";

EvaluationKey Key() { return {.study = "a study", .point = "a/point=1"}; }

PointFolder& Folder() {
  static PointFolder folder(FuzzFolder() + "points", [](const std::string&) {});
  return folder;
}
// As PointFolder names it.
std::string PointFile() { return "points/a~point=1.json"; }

void ReadPoint(std::string_view input) {
  PointFolder& folder = Folder();
  WriteFuzzFile(PointFile(), input);
  folder.Find(Key(), kHash);
}

std::vector<std::string> PointSeeds() {
  Evaluation evaluation;
  evaluation.hash = kHash;
  Result& result = evaluation.results.emplace_back();
  result.scenario = "made up";
  result.ranks = 8;
  result.step = Seconds(0.5);
  result.axes.emplace_back().name = "row";
  result.links.push_back({.name = "nic",
                          .kind = "network",
                          .bytes = Bytes(1),
                          .capacity = BytesPerSecond(1),
                          .utilization = 0.5,
                          .count = 1});
  Folder().Keep(Key(), evaluation);
  std::vector<std::string> seeds = {ReadInputFile(FuzzFolder() + PointFile())};
  evaluation.results.push_back(result);
  Folder().Keep(Key(), evaluation);
  seeds.push_back(ReadInputFile(FuzzFolder() + PointFile()));
  CHECK(Folder().Find(Key(), kHash)->results.size() == 2);
  return seeds;
}

std::vector<std::string> PointWords() {
  std::vector<std::string> words = SchemaWords("result");
  for (const char* word :
       {"schema", "rehearse.point.v2", "checksum", "scenario_hash", "minus", "error", "result"})
    words.push_back("\"" + std::string(word) + "\"");
  return words;
}

const FuzzTargetRow kPointRow({"kept_point", ReadPoint, PointSeeds, PointWords,
                               FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
