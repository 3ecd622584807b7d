#include "scenarios/rehearsal.h"

#include <chrono>

#include <sys/resource.h>

#include "collectives/lower.h"
#include "sim/error.h"
#include "sim/schedule_check.h"
#include "sim/simulate.h"
#include "workloads/gpt_planner.h"

namespace rehearse {
namespace {

Bytes PeakResidentMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Bytes(static_cast<double>(usage.ru_maxrss) * 1024);  // Linux counts in KiB
}

TraceNames NamesOf(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  TraceNames names;
  names.title = scenario.name;
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) {
    names.node_of_rank.push_back(cluster.NodeOf(rank));
    names.device_of_rank.push_back(cluster.graph()[cluster.devices()[rank]].name);
  }
  return names;
}

// A transfer can only be stuck where the scenario lets links fail.
Simulation Play(const Scenario& scenario, const Program& program, const RehearsalOptions& options) {
  try {
    return Simulate(program, scenario.cluster->device_count(),
                    {.record_link_loads = options.record_link_loads});
  } catch (const Error& error) {
    throw Error(scenario.perturbation_place, error.what());
  }
}

}  // namespace

Rehearsal Rehearse(const Scenario& scenario, const RehearsalOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Cluster& cluster = *scenario.cluster;

  Rehearsal rehearsal;
  rehearsal.schedule =
      PlanGpt(scenario.model, scenario.training, scenario.strategy, scenario.strategy_place);
  CheckSchedule(rehearsal.schedule);
  CheckBuffers(rehearsal.schedule);

  Router router(cluster, scenario.routing,
                FailingLinks(scenario.lowering.perturbation, cluster.link_count()));
  Lowered lowered = Lower(rehearsal.schedule, router, scenario.lowering);
  Simulation simulation = Play(scenario, lowered.program, options);
  lowered.program = {};
  rehearsal.timeline = std::move(simulation.timeline);
  rehearsal.timeline.representative = std::move(lowered.representative);

  Result& result = rehearsal.result;
  result = Summarize(rehearsal.schedule, rehearsal.timeline, scenario.nominal_peak);
  result.scenario = scenario.name;
  result.fidelity = Name(scenario.lowering.fidelity);
  result.memory_capacity = cluster.DeviceOf(0).memory;
  result.simulator.events = simulation.stats.events;
  result.simulator.transfers = simulation.stats.transfers;
  result.simulator.classes = lowered.rank_classes;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  result.simulator.wall = Seconds(wall.count());
  result.simulator.peak_rss = PeakResidentMemory();
  rehearsal.names = NamesOf(scenario);
  return rehearsal;
}

}  // namespace rehearse
