// Speed of planning, from a network and a strategy to a schedule. The target: GPT-175B for 16,384
// ranks within 50 ms.
#include <benchmark/benchmark.h>

#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"

namespace rehearse {
namespace {

const GptModel& Gpt175B() {
  for (const GptModel& model : KnownModels()) {
    if (model.name == "gpt-175b") return model;
  }
  throw Error("no model gpt-175b");
}

void PlanGpt175B(benchmark::State& state) {
  Training training;
  training.batch = 4096;
  training.sequence = 2048;
  FourDOptions options;
  options.column = 8;
  options.row = 4;
  options.depth = 4;
  options.data = static_cast<uint32_t>(state.range(0) / 128);
  Schedule schedule;
  for (auto _ : state) {
    const Network network = MakeDecoder(Gpt175B(), training);
    schedule = PlanStep(network, training, MakeFourD(options, network));
  }
  state.counters["ranks"] = schedule.ranks();
  state.counters["ops"] = static_cast<double>(schedule.roles[0].ops.size());
}
BENCHMARK(PlanGpt175B)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse
