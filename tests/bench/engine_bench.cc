// Speed of the engine: event queue, max-min solver, rings at step fidelity, fluid rings.
//
// "transfers" counts steps of flows, the unit of DESIGN section 9. Program building is not timed.
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "sim/event_queue.h"
#include "sim/max_min.h"
#include "sim/simulate.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace {

constexpr double kNic = 25e9;

void CountTransfers(benchmark::State& state, uint64_t transfers) {
  state.counters["transfers/s"] =
      benchmark::Counter(static_cast<double>(transfers), benchmark::Counter::kIsRate);
}

void Play(benchmark::State& state, const Program& program) {
  uint64_t transfers = 0;
  SimulationStats stats;
  while (state.KeepRunning()) {
    stats = Simulate(program, 1).stats;
    transfers += stats.transfers;
  }
  CountTransfers(state, transfers);
  state.counters["transfers"] = static_cast<double>(stats.transfers);
  state.counters["events"] = static_cast<double>(stats.events);
  state.counters["solves"] = static_cast<double>(stats.solves);
}

// `rings` rings over the same `nodes` nodes of a full-bandwidth switch, all through the node's one
// NIC: an edge crosses the sender's uplink and the receiver's downlink, and with a core link also
// that.
Program SwitchRings(uint32_t nodes, uint32_t rings, uint32_t steps, double spread, double core) {
  ProgramBuilder builder;
  Random random(1);
  std::vector<LinkId> up;
  std::vector<LinkId> down;
  for (uint32_t i = 0; i < nodes; ++i) {
    const double rate = kNic * (1 + spread * (2 * random.Fraction() - 1));
    up.push_back(builder.AddLink({fmt::format("up{}", i), "network", BytesPerSecond(rate)}));
    down.push_back(builder.AddLink({fmt::format("down{}", i), "network", BytesPerSecond(rate)}));
  }
  LinkId core_link;
  if (core > 0) core_link = builder.AddLink({"core", "network", BytesPerSecond(core)});
  for (uint32_t ring = 0; ring < rings; ++ring) {
    std::vector<TaskId> flows;
    for (uint32_t i = 0; i < nodes; ++i) {
      std::vector<LinkUse> uses = {{up[i], 1}, {down[(i + 1) % nodes], 1}};
      if (core > 0) uses.push_back({core_link, 1});
      Flow flow;
      flow.bytes = 1e6;
      flow.latency = Time(2'000'000);
      flow.steps = steps;
      flow.use_set = builder.AddUseSet(uses);
      flows.push_back(builder.AddFlow(flow));
    }
    for (uint32_t i = 0; i < nodes; ++i) builder.Chain(flows[i], flows[(i + 1) % nodes]);
  }
  return builder.Build();
}

void RingStepsCoincide(benchmark::State& state) {
  const uint32_t ranks = static_cast<uint32_t>(state.range(0));
  Play(state, SwitchRings(ranks, 1, 2 * (ranks - 1), 0, 0));
}
BENCHMARK(RingStepsCoincide)->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

void RingUnequalNics(benchmark::State& state) {
  const uint32_t ranks = static_cast<uint32_t>(state.range(0));
  Play(state, SwitchRings(ranks, 1, 2 * (ranks - 1), 0.15, 0));
}
BENCHMARK(RingUnequalNics)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

void EightRingsShareNics(benchmark::State& state) {
  const uint32_t nodes = static_cast<uint32_t>(state.range(0));
  Play(state, SwitchRings(nodes, 8, 2 * (nodes - 1), 0, 0));
}
BENCHMARK(EightRingsShareNics)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

void EightRingsUnequalNics(benchmark::State& state) {
  Play(state, SwitchRings(64, 8, 126, 0.15, 0));
}
BENCHMARK(EightRingsUnequalNics)->Unit(benchmark::kMillisecond);

// The same with a core link that connects all flows: as wide as `range(0)` percent of all NICs
// together. From 100 % on (the NICs' sum is a little random: 110) it never binds.
void EightRingsUnequalNicsOneCore(benchmark::State& state) {
  Play(state, SwitchRings(64, 8, 126, 0.15, 64 * kNic * static_cast<double>(state.range(0)) / 100));
}
BENCHMARK(EightRingsUnequalNicsOneCore)->Arg(110)->Arg(90)->Arg(50)->Unit(benchmark::kMillisecond);

void RingUnequalNicsOneCore(benchmark::State& state) {
  Play(state, SwitchRings(64, 1, 126, 0.15, 64 * kNic * static_cast<double>(state.range(0)) / 100));
}
BENCHMARK(RingUnequalNicsOneCore)
    ->Arg(110)
    ->Arg(90)
    ->Arg(75)
    ->Arg(50)
    ->Unit(benchmark::kMillisecond);

// Fluid: each ring is one flow over all its edges. `rings` of them start one after another on the
// same nodes.
void FluidRings(benchmark::State& state) {
  const uint32_t nodes = 64;
  const uint32_t rings = static_cast<uint32_t>(state.range(0));
  ProgramBuilder builder;
  std::vector<LinkUse> uses;
  for (uint32_t i = 0; i < 2 * nodes; ++i) {
    const LinkId link = builder.AddLink({fmt::format("nic{}", i), "network", BytesPerSecond(kNic)});
    uses.push_back({link, 1});
  }
  const uint32_t use_set = builder.AddUseSet(uses);
  for (uint32_t i = 0; i < rings; ++i) {
    const TaskId delay = builder.AddDelay(Time(1'000'000 * int64_t{i}));
    Flow flow;
    flow.bytes = 1e6;
    flow.use_set = use_set;
    builder.AddEdge(delay, builder.AddFlow(flow));
  }
  Play(state, builder.Build());
}
BENCHMARK(FluidRings)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void PlayRandomProgram(benchmark::State& state) {
  Play(state, RandomProgram(7, static_cast<uint32_t>(state.range(0))));
}
BENCHMARK(PlayRandomProgram)->Arg(400)->Arg(4000)->Unit(benchmark::kMillisecond);

// Random flows over random links: every link a level of its own.
void SolveRandomFlows(benchmark::State& state) {
  const uint32_t flows = static_cast<uint32_t>(state.range(0));
  const uint32_t links = flows / 2;
  Random random(1);
  std::vector<double> capacities;
  for (uint32_t i = 0; i < links; ++i) capacities.push_back(kNic * (1 + random.Fraction()));
  std::vector<uint32_t> use_begin = {0};
  std::vector<LinkUse> uses;
  for (uint32_t i = 0; i < flows; ++i) {
    const uint32_t first = random.Below(links);
    for (uint32_t j = 0; j < 4; ++j) uses.push_back({LinkId((first + 7 * j) % links), 1});
    use_begin.push_back(static_cast<uint32_t>(uses.size()));
  }
  std::vector<double> rates(flows);
  MaxMinSolver solver;
  while (state.KeepRunning()) {
    solver.Solve(capacities, use_begin, uses, rates);
    benchmark::DoNotOptimize(rates.data());
  }
  state.counters["flows/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * flows,
                                                 benchmark::Counter::kIsRate);
}
BENCHMARK(SolveRandomFlows)->Arg(64)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

// `range(0)` tasks, each rescheduled as it comes up; `range(1)` of them at a time share an instant.
void PopAndSchedule(benchmark::State& state) {
  const uint32_t tasks = static_cast<uint32_t>(state.range(0));
  const uint32_t together = static_cast<uint32_t>(state.range(1));
  EventQueue queue(tasks);
  Random random(1);
  std::vector<Time> period;
  for (uint32_t i = 0; i < tasks; ++i) {
    if (i % together == 0)
      period.push_back(Time(1'000'000 + random.Below(1'000'000)));
    else
      period.push_back(period.back());
    queue.Schedule(i, period[i]);
  }
  std::vector<uint32_t> batch;
  uint64_t events = 0;
  while (state.KeepRunning()) {
    const Time now = queue.PopBatch(&batch);
    for (const uint32_t task : batch) queue.Schedule(task, now + period[task]);
    events += batch.size();
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(PopAndSchedule)->Args({1024, 1})->Args({1024, 1024})->Args({65536, 1})->Args({65536, 64});

}  // namespace
}  // namespace rehearse
