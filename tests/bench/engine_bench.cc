// Speed of the engine: event queue, max-min solver, rings at step fidelity, fluid rings.
//
// "transfers" counts steps of flows: an all-reduce around a ring of p ranks has 2p(p - 1). Program
// building is not timed.
#include <fstream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "sim/engine/event_queue.h"
#include "sim/engine/max_min.h"
#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace {

constexpr double kNic = 25e9;

void CountTransfers(benchmark::State& state, uint64_t transfers) {
  state.counters["transfers/s"] =
      benchmark::Counter(static_cast<double>(transfers), benchmark::Counter::kIsRate);
}

// The most memory that the process has ever held: a benchmark's own only when it runs alone.
double PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return 1024 * kibibytes;
  }
  return 0;
}

void Play(benchmark::State& state, const Program& program, const SimulationOptions& options = {}) {
  uint64_t transfers = 0;
  SimulationStats stats;
  while (state.KeepRunning()) {
    stats = Simulate(program, 1, options).stats;
    transfers += stats.transfers;
  }
  CountTransfers(state, transfers);
  state.counters["transfers"] = static_cast<double>(stats.transfers);
  state.counters["events"] = static_cast<double>(stats.events);
  state.counters["solves"] = static_cast<double>(stats.solves);
  state.counters["peak_bytes"] = PeakBytes();
}

struct Rings {
  uint32_t nodes = 64;
  uint32_t rings = 1;
  uint32_t nics = 1;  // a node; ring k goes through NIC k mod nics
  double spread = 0;  // NIC rates are uniform in 1 ± spread
  double core = 0;    // of all NICs' rates together; 0: no core link

  uint32_t steps() const { return 2 * (nodes - 1); }  // of an all-reduce
};

// Rings over the same nodes of a switch: an edge crosses the sender's uplink and the receiver's
// downlink, and with a core link also that.
Program SwitchRings(const Rings& what) {
  ProgramBuilder builder;
  Random random(1);
  std::vector<LinkId> up;
  std::vector<LinkId> down;
  double sum = 0;
  for (uint32_t i = 0; i < what.nodes * what.nics; ++i) {
    const double rate = kNic * (1 + what.spread * (2 * random.Fraction() - 1));
    up.push_back(builder.AddLink({fmt::format("up{}", i), "network", BytesPerSecond(rate)}));
    down.push_back(builder.AddLink({fmt::format("down{}", i), "network", BytesPerSecond(rate)}));
    sum += rate;
  }
  LinkId core;
  if (what.core > 0) {
    core = builder.AddLink({"core", "network", BytesPerSecond(what.core * sum)});
  }
  for (uint32_t ring = 0; ring < what.rings; ++ring) {
    const uint32_t nic = ring % what.nics * what.nodes;
    std::vector<TaskId> flows;
    for (uint32_t i = 0; i < what.nodes; ++i) {
      std::vector<LinkUse> uses = {{up[nic + i], 1}, {down[nic + (i + 1) % what.nodes], 1}};
      if (what.core > 0) uses.push_back({core, 1});
      Flow flow;
      flow.bytes = 1e6;
      flow.latency = Time(2'000'000);
      flow.steps = what.steps();
      flow.use_set = builder.AddUseSet(uses);
      flows.push_back(builder.AddFlow(flow));
    }
    for (uint32_t i = 0; i < what.nodes; ++i) builder.Chain(flows[i], flows[(i + 1) % what.nodes]);
  }
  return builder.Build();
}

// As users get it, and with every step played.
void PlayRings(benchmark::State& state, const Rings& what) {
  Play(state, SwitchRings(what), {.jump = state.range(1) != 0});
}

void Ring(benchmark::State& state) {
  PlayRings(state, {.nodes = static_cast<uint32_t>(state.range(0))});
}
BENCHMARK(Ring)
    ->ArgNames({"nodes", "jump"})
    ->ArgsProduct({{16, 64, 256, 1024, 4096}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void RingUnequalNics(benchmark::State& state) {
  PlayRings(state, {.nodes = static_cast<uint32_t>(state.range(0)), .spread = 0.15});
}
BENCHMARK(RingUnequalNics)
    ->ArgNames({"nodes", "jump"})
    ->ArgsProduct({{16, 64, 256, 1024}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void EightRingsEightNics(benchmark::State& state) {
  PlayRings(state, {.nodes = static_cast<uint32_t>(state.range(0)), .rings = 8, .nics = 8});
}
BENCHMARK(EightRingsEightNics)
    ->ArgNames({"nodes", "jump"})
    ->ArgsProduct({{16, 64, 256, 1024}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void EightRingsOneNic(benchmark::State& state) {
  PlayRings(state, {.nodes = static_cast<uint32_t>(state.range(0)), .rings = 8});
}
BENCHMARK(EightRingsOneNic)
    ->ArgNames({"nodes", "jump"})
    ->ArgsProduct({{16, 64, 256, 1024}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void EightRingsUnequalNics(benchmark::State& state) {
  PlayRings(state, {.rings = 8, .spread = 0.15});
}
BENCHMARK(EightRingsUnequalNics)
    ->ArgNames({"nodes", "jump"})
    ->ArgsProduct({{64}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// The same with a core link that all flows cross, as wide as the given percentage of all NICs: it
// never binds, binds now and then, or binds often.
void EightRingsUnequalNicsAndCore(benchmark::State& state) {
  PlayRings(state, {.rings = 8, .spread = 0.15, .core = static_cast<double>(state.range(2)) / 100});
}
BENCHMARK(EightRingsUnequalNicsAndCore)
    ->ArgNames({"nodes", "jump", "core"})
    ->ArgsProduct({{64}, {0, 1}, {100, 90, 50}})
    ->Unit(benchmark::kMillisecond);

// Transfers of random sizes between random nodes through the core, each followed by the next: no
// symmetry, nothing periodic.
void RandomPairsAndCore(benchmark::State& state) {
  ProgramBuilder builder;
  Random random(1);
  const uint32_t nodes = 64;
  for (uint32_t i = 0; i < 2 * nodes; ++i) {
    builder.AddLink({fmt::format("nic{}", i), "network", BytesPerSecond(kNic)});
  }
  const double core = kNic * nodes * static_cast<double>(state.range(0)) / 100;
  const LinkId core_link = builder.AddLink({"core", "network", BytesPerSecond(core)});
  for (uint32_t i = 0; i < 2 * nodes; ++i) {
    TaskId last;
    for (uint32_t j = 0; j < 100; ++j) {
      const LinkId from(random.Below(nodes));
      const LinkId to(nodes + random.Below(nodes));
      Flow flow;
      flow.bytes = 1e6 * (1 + random.Fraction());
      flow.use_set = builder.AddUseSet({{from, 1}, {to, 1}, {core_link, 1}});
      const TaskId task = builder.AddFlow(flow);
      if (last.IsSet()) builder.AddEdge(last, task);
      last = task;
    }
  }
  Play(state, builder.Build());
}
BENCHMARK(RandomPairsAndCore)
    ->ArgName("core")
    ->Arg(100)
    ->Arg(50)
    ->Arg(25)
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
