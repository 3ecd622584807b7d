// How fast a search looks at points: the papers' formulas alone, and whole searches that decide by
// them. Counters: points of the space, and points a second.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "scenarios/playing/paper_models.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/space_formula.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

JsonDocument Shipped(const std::string& name, const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/" + name + ".json");
  for (const std::string& change : changes) document.Set(change);
  return document;
}

const std::vector<std::string> kAllMicroBatches = {"search.axes=[]"};
// Two kinds of products of a transformer's 81 apart from the others.
const std::vector<std::string> kTransformer = {
    R"(model={"layers": 20, "hidden": 8192, "heads": 64, "vocabulary": 51200})",
    R"(training={"batch": 1024, "sequence": 1024, "micro_batches": 1, "recomputation": "full",
                 "precision": "fp32"})",
    R"(strategy.products={"default": [2, 8, 8]})",
    R"(search.axes=[{"sbp_product": "qkv"}, {"sbp_product": "up"},
                    {"path": "training.micro_batches", "values": [1]}])"};

void Count(benchmark::State& state, size_t points) {
  state.counters["points"] = static_cast<double>(points);
  state.counters["points/s"] = benchmark::Counter(static_cast<double>(points),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

// The formula for every point, each learnt before.
void PutToAll(benchmark::State& state, const std::string& name,
              const std::vector<std::string>& changes) {
  const JsonDocument document = Shipped(name, changes);
  const Search search = ReadSearch(document);
  PaperModels models;
  SpaceFormula formula(search.space, static_cast<PaperModel>(search.formula), document, &models);
  const auto points = static_cast<size_t>(search.space.Size());
  size_t known = 0;
  for (size_t i = 0; i < points; ++i) {
    const SpacePoint point = search.space.PointAt(i);
    JsonDocument changed = document;
    if (!formula.At(point).seconds) {
      try {
        for (const auto& [path, value] : search.space.ChangesOf(point))
          changed.Set(path + "=" + value.dump());
        formula.Learn(point, changed, ReadScenario(changed));
      } catch (const Error&) {  // an impossible point
      }
    }
    if (formula.At(point).seconds) ++known;
  }
  double sum = 0;
  while (state.KeepRunning())
    for (size_t i = 0; i < points; ++i)
      sum += formula.At(search.space.PointAt(i)).seconds.value_or(0);
  benchmark::DoNotOptimize(sum);
  Count(state, points);
  state.counters["known"] = static_cast<double>(known);
}
BENCHMARK_CAPTURE(PutToAll, axonn_gpt40b, "search-gpt40b-perlmutter", kAllMicroBatches);
BENCHMARK_CAPTURE(PutToAll, atp_m4, "search-atp-mesh", {"search.where=[]"});
BENCHMARK_CAPTURE(PutToAll, autoddl_mlp, "search-mlp-piz-daint", {})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PutToAll, autoddl_transformer, "search-mlp-piz-daint", kTransformer);

// From the scenario to the sorted list of all points.
void SearchByFormula(benchmark::State& state, const std::string& name,
                     const std::vector<std::string>& changes) {
  const JsonDocument document = Shipped(name, changes);
  size_t points = 0;
  while (state.KeepRunning()) {
    const Search search = ReadSearch(document);
    points = RunSearch(search, {.threads = 1}).looked_at;
  }
  Count(state, points);
}
BENCHMARK_CAPTURE(SearchByFormula, autoddl_mlp_exhaustive, "search-mlp-piz-daint",
                  {"search.method=exhaustive"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchByFormula, autoddl_mlp_random, "search-mlp-piz-daint",
                  {"search.method=random", "search.evaluations=100000"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchByFormula, autoddl_mlp_metropolis, "search-mlp-piz-daint",
                  {"search.method=metropolis", "search.evaluations=100000"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchByFormula, autoddl_mlp_descent, "search-mlp-piz-daint",
                  {"search.evaluations=100000"})
    ->Unit(benchmark::kMillisecond);

// All that a training framework would let one choose, by steps composed of few layers.
void SearchByComposedSteps(benchmark::State& state, const std::string& model, uint32_t machines) {
  const JsonDocument document =
      JsonDocument::FromValue({{"name", "wide"},
                               {"cluster", {{"preset", "dgx-h100"}, {"nodes", machines}}},
                               {"model", {{"preset", model}}},
                               {"training", {{"batch", 512}, {"sequence", 4096}}},
                               {"search", {{"decide", "formula"}}}},
                              {});
  size_t points = 0;
  while (state.KeepRunning()) {
    const Search search = ReadSearch(document);
    points = RunSearch(search, {.threads = 1}).looked_at;
  }
  Count(state, points);
}
BENCHMARK_CAPTURE(SearchByComposedSteps, llama_70b_on_64, "llama-3-70b", 8)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchByComposedSteps, deepseek_v3_on_1024, "deepseek-v3", 128)
    ->Unit(benchmark::kMillisecond);

// Every grid of AxoNN's that fits, simulated; a new search each time, as the command has it.
void SearchBySimulation(benchmark::State& state, const std::vector<std::string>& changes) {
  const JsonDocument document = Shipped("search-gpt40b-perlmutter", changes);
  size_t simulated = 0;
  while (state.KeepRunning()) {
    const Search search = ReadSearch(document);
    simulated = RunSearch(search, {.threads = 1}).simulated;
  }
  Count(state, simulated);
}
BENCHMARK_CAPTURE(SearchBySimulation, gpt20b_on_64,
                  {"search.decide=simulation", "model.preset=gpt-20b"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchBySimulation, gpt40b_on_64, {"search.decide=simulation"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchBySimulation, gpt80b_on_1024,
                  {"search.decide=simulation", "model.preset=gpt-80b", "cluster.nodes=256",
                   "training.batch=1024", "strategy.data=16"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse
