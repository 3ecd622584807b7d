// Speed of the whole pipeline: scenario to result, folded and not.
#include <string>

#include <benchmark/benchmark.h>

#include "scenarios/rehearsal.h"
#include "sim/json_reader.h"

namespace rehearse {
namespace {

void PlayScenario(benchmark::State& state, const std::string& name, bool fold) {
  const JsonDocument document =
      JsonDocument::FromFile(std::string(REHEARSE_SOURCE_DIR) + "/scenarios/" + name + ".json");
  Result result;
  for (auto _ : state) {
    Scenario scenario = ReadScenario(document);
    scenario.lowering.fold = fold;
    result = Rehearse(scenario).result;
  }
  state.counters["ranks"] = result.ranks;
  state.counters["classes"] = static_cast<double>(result.simulator.classes);
  state.counters["events"] = static_cast<double>(result.simulator.events);
  state.counters["peak_MiB"] = result.simulator.peak_rss.value() / 1048576;
}

const auto kMilliseconds = benchmark::kMillisecond;
BENCHMARK_CAPTURE(PlayScenario, gpt20b_16_gpus_folded, "axonn-gpt20b-perlmutter", true)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayScenario, gpt20b_16_gpus, "axonn-gpt20b-perlmutter", false)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayScenario, gpt80b_1024_gpus_folded, "axonn-weak-80b", true)
    ->Unit(kMilliseconds);
BENCHMARK_CAPTURE(PlayScenario, gpt80b_1024_gpus, "axonn-weak-80b", false)->Unit(kMilliseconds);

}  // namespace
}  // namespace rehearse
