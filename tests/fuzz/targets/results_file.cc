// A file of results in SQLite, damaged: read, and asked for a point.
#include "scenarios/evaluating/results_file.h"

#include <filesystem>

#include "sim/base/input_file.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

constexpr const char* kName = "results.sqlite";
constexpr const char* kHashOfPoint = "0123456789abcdef";

void ReadResults(std::string_view input) {
  if (!HasSqlite()) return;
  const std::string path = WriteFuzzFile(kName, input);
  for (const char* log : {"-wal", "-shm", "-journal"}) std::filesystem::remove(path + log);
  {
    ResultsFile frozen(path, ResultsFile::Opening::kFrozen);
    frozen.Find({.study = "a study", .point = "b"}, kHashOfPoint);
    frozen.ForEach([](const KeptPoint&) {});
  }
  ResultsFile there(path, ResultsFile::Opening::kThere);
  there.Find({.study = "another study", .point = "a"}, kHashOfPoint);
  there.ForEach([](const KeptPoint&) {});
}

std::vector<std::string> ResultsSeeds() {
  if (!HasSqlite()) return {""};
  const std::string path = FuzzFolder() + "made.sqlite";
  std::filesystem::remove(path);
  {
    ResultsFile file(path, ResultsFile::Opening::kMakeIfMissing);
    Evaluation evaluation;
    evaluation.hash = kHashOfPoint;
    Result& result = evaluation.results.emplace_back();
    result.scenario = "made up";
    result.step = Seconds(0.5);
    for (const char* point : {"a", "b"})
      file.Keep({.study = "a study", .point = point, .parameters = {{"training.batch", 8}}},
                evaluation);
    evaluation.results.clear();
    evaluation.error = "does not fit";
    file.Keep({.study = "a study", .point = "c", .calibrated = 1.5}, evaluation);
  }
  return {ReadInputFile(path)};
}

std::vector<std::string> ResultsWords() {
  return {"SQLite format 3",
          "CREATE TABLE points (",
          "TEXT NOT NULL",
          "REAL",
          "parameters",
          "checksum",
          "{\"training.batch\": 8}",
          "\"step_seconds\": 1",
          "a study",
          kHashOfPoint,
          "REHR",
          "\x0d",
          "\x05",
          "\x0a"};
}

const FuzzTargetRow kResultsRow({"results_file", ReadResults, ResultsSeeds, ResultsWords,
                                 FuzzLanguage::kBytes});

}  // namespace
}  // namespace rehearse
