// Speed of the whole pipeline, from a scenario's JSON to its result: folded and not, with edits,
// large clusters, and the many small ones of a search. Counters are those of the last scenario
// played.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "scenarios/evaluating/engine.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void Count(benchmark::State& state, const Result& result) {
  state.counters["ranks"] = result.ranks;
  state.counters["classes"] = static_cast<double>(result.simulator.classes);
  state.counters["events"] = static_cast<double>(result.simulator.events);
  state.counters["transfers"] = static_cast<double>(result.simulator.transfers);
  state.counters["peak_bytes"] = result.simulator.peak_rss.value();
}

void Play(benchmark::State& state, const JsonDocument& document, bool fold) {
  Result result;
  while (state.KeepRunning()) {
    Scenario scenario = ReadScenario(document);
    scenario.lowering.fold = fold;
    result = Rehearse(scenario).result;
  }
  Count(state, result);
}

void PlayShipped(benchmark::State& state, const std::string& name, bool fold) {
  Play(state, JsonDocument::FromFile(SourceDir() + "/scenarios/" + name + ".json"), fold);
}

const auto kMilliseconds = benchmark::kMillisecond;
BENCHMARK_CAPTURE(PlayShipped, gpt20b_16_gpus_folded, "axonn-gpt20b-perlmutter", true)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayShipped, gpt20b_16_gpus, "axonn-gpt20b-perlmutter", false)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayShipped, gpt80b_1024_gpus_folded, "axonn-weak-80b", true)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayShipped, gpt80b_1024_gpus, "axonn-weak-80b", false)->Unit(kMilliseconds);
// Large pipelines: 64 stages and 512 micro-batches; 16 stages and 64 shares of the experts.
BENCHMARK_CAPTURE(PlayShipped, gpt1t_3072_gpus, "large/gpt-1t", true)->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayShipped, deepseek_v3_2048_gpus, "large/deepseek-v3", true)
    ->Unit(kMilliseconds);

std::string Strategy(uint32_t column, uint32_t row, uint32_t depth, uint32_t data,
                     bool overlaps = true) {
  return fmt::format(
      R"({{"kind": "4d", "column": {}, "row": {}, "depth": {}, "data": {},
           "transpose_alternate_layers": true, "overlap_all_reduce": {},
           "overlap_reduce_scatter": {}, "overlap_all_gather": {}, "cached_layers": 0}})",
      column, row, depth, data, overlaps, overlaps, overlaps);
}

constexpr const char* kThreeNodesEdited = R"([
    {"links": "node3/nic*", "bandwidth": "0.5x"},
    {"devices": "node17/gpu2", "compute": "0.8x"},
    {"links": "node40/nic1", "bandwidth": "0.7x"}])";

// A model like GPT-175B with 4D on Perlmutter: 2 × 2 ranks per node, 64 deep, the rest
// data-parallel.
void PlayGpt175b(benchmark::State& state, const char* edits) {
  const auto ranks = static_cast<uint32_t>(state.range(0));
  const std::string text = fmt::format(
      R"({{"name": "gpt-175b", "cluster": "perlmutter:nodes={}",
           "model": {{"layers": 96, "hidden": 12288, "heads": 96, "vocabulary": 51200}},
           "training": {{"batch": {}, "sequence": 2048, "recomputation": "full"}},
           "strategy": {}, "edits": {}}})",
      ranks / 4, ranks / 4, Strategy(2, 2, 64, ranks / 256), edits);
  Play(state, JsonDocument::FromText(text, "gpt-175b.json"), true);
}
BENCHMARK_CAPTURE(PlayGpt175b, folded, "[]")
    ->ArgName("ranks")
    ->RangeMultiplier(2)
    ->Range(256, 131072)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayGpt175b, edited, kThreeNodesEdited)
    ->ArgName("ranks")
    ->Arg(1024)
    ->Arg(4096)
    ->Arg(16384)
    ->Unit(kMilliseconds);

// Every grid of 64 = column · row · depth · data, with and without overlap, for six models: 84 · 2
// · 6 = 1,008, of which the first 1,000.
std::vector<JsonDocument> SearchSpace() {
  std::vector<JsonDocument> documents;
  for (const uint32_t layers : {8u, 12u, 16u, 20u, 24u, 28u}) {
    for (uint32_t column = 1; column <= 64; column *= 2) {
      for (uint32_t row = 1; column * row <= 64; row *= 2) {
        for (uint32_t depth = 1; column * row * depth <= 64; depth *= 2) {
          for (const bool overlaps : {false, true}) {
            if (documents.size() == 1000) return documents;
            const uint32_t data = 64 / (column * row * depth);
            documents.push_back(JsonDocument::FromText(
                fmt::format(
                    R"({{"name": "candidate", "cluster": "perlmutter:nodes=16",
                         "model": {{"layers": {}, "hidden": 4096, "heads": 64, "vocabulary": 51200}},
                         "training": {{"batch": 256, "sequence": 2048, "recomputation": "full"}},
                         "strategy": {}}})",
                    layers, Strategy(column, row, depth, data, overlaps)),
                "candidate.json"));
          }
        }
      }
    }
  }
  return documents;
}

void EvaluateSearchSpace(benchmark::State& state) {
  const std::vector<JsonDocument> documents = SearchSpace();
  Result result;
  size_t simulated = 0;
  while (state.KeepRunning()) {
    Engine engine({.hash = false});  // as a search has it
    simulated = 0;
    for (const JsonDocument& document : documents) {
      const Evaluation evaluation = engine.EvaluateApart({document});
      if (evaluation.results.empty()) continue;  // impossible
      result = evaluation.results.front();
      ++simulated;
    }
  }
  Count(state, result);
  state.counters["scenarios"] = static_cast<double>(documents.size());
  state.counters["simulated/s"] = benchmark::Counter(static_cast<double>(simulated),
                                                     benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(EvaluateSearchSpace)->Unit(kMilliseconds);

}  // namespace
}  // namespace rehearse
