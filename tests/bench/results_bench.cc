// Points written into a file of results, a transaction each, and read back.
#include <filesystem>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/evaluating/results_file.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

Evaluation Played() {
  Evaluation evaluation;
  const JsonDocument document =
      JsonDocument::FromFile(SourceDir() + "/scenarios/axonn-gpt20b-perlmutter.json");
  evaluation.results.push_back(Rehearse(ReadScenario(document)).result);
  return evaluation;
}

void KeepPoints(benchmark::State& state) {
  if (!HasSqlite()) return state.SkipWithError("this build has no SQLite");
  Evaluation evaluation = Played();
  const fs::path folder = fs::temp_directory_path() / fmt::format("rehearse-bench-{}", getpid());
  const auto points = static_cast<uint64_t>(state.range(0));
  while (state.KeepRunning()) {
    fs::create_directories(folder);
    {
      ResultsFile file((folder / "r.sqlite").string(), ResultsFile::Opening::kMakeIfMissing);
      for (uint64_t i = 0; i < points; ++i) {
        evaluation.hash = fmt::format("{:016x}", i * 0x9e3779b97f4a7c15);  // in no order
        file.Keep({.study = "bench",
                   .point = fmt::format("column={}/row={}", i, i % 7),
                   .parameters = {{"strategy.column", i}, {"strategy.row", i % 7}}},
                  evaluation);
      }
    }
    state.counters["bytes"] = static_cast<double>(fs::file_size(folder / "r.sqlite"));
    fs::remove_all(folder);
  }
  state.SetItemsProcessed(static_cast<int64_t>(points) * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(KeepPoints)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void FindPoints(benchmark::State& state) {
  if (!HasSqlite()) return state.SkipWithError("this build has no SQLite");
  Evaluation evaluation = Played();
  const fs::path path = fs::temp_directory_path() / fmt::format("rehearse-{}.sqlite", getpid());
  fs::remove(path);
  constexpr uint64_t kPoints = 10'000;
  {
    ResultsFile file(path.string(), ResultsFile::Opening::kMakeIfMissing);
    const auto key = [](uint64_t i) {
      return EvaluationKey{.study = "bench", .point = fmt::format("{}", i)};
    };
    for (uint64_t i = 0; i < kPoints; ++i) {
      evaluation.hash = fmt::format("{}", i);
      file.Keep(key(i), evaluation);
    }
    uint64_t i = 0;
    while (state.KeepRunning()) {
      benchmark::DoNotOptimize(file.Find(key(i), fmt::format("{}", i)));
      i = (i + 1) % kPoints;
    }
  }
  fs::remove(path);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(FindPoints)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse
