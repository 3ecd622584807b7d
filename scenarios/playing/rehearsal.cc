#include "scenarios/playing/rehearsal.h"

#include <chrono>

#include <sys/resource.h>

#include "scenarios/playing/calibrated.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"

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

}  // namespace

PlayedScenario PlayScenario(const Scenario& scenario, const SimulationOptions& options) {
  PlayedScenario played;
  const Cluster& cluster = *scenario.cluster;
  played.schedule = AsExecuted(Prepare(scenario).front().schedule, cluster);
  Router router(cluster, scenario.routing,
                FailingLinks(scenario.lowering.perturbation, cluster.link_count()));
  played.lowered = Lower(played.schedule, router, scenario.lowering);
  try {
    played.simulation = Simulate(played.lowered.program, played.schedule.ranks(), options);
  } catch (const Error& error) {
    // A transfer can only be stuck where the scenario lets links fail.
    throw Error(scenario.perturbation_place, error.what());
  }
  played.simulation.timeline.representative = played.lowered.representative;
  return played;
}

Result Describe(const Scenario& scenario, const PlayedScenario& played) {
  const Simulation& simulation = played.simulation;
  Result result = Summarize(played.schedule, simulation.timeline, scenario.nominal_peak);
  result.scenario = scenario.name;
  result.fidelity = Name(scenario.lowering.fidelity);
  result.notes = CalibrationNotes(played.schedule, *scenario.cluster);
  result.memory_capacity = scenario.cluster->DeviceOf(0).memory;
  result.simulator.events = simulation.stats.events;
  result.simulator.transfers = simulation.stats.transfers;
  result.chosen = played.lowered.chosen;
  result.simulator.classes = played.lowered.rank_classes;
  return result;
}

Rehearsal Rehearse(const Scenario& scenario, const RehearsalOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PlayedScenario played = PlayScenario(scenario, {.record_link_loads = options.record_link_loads});
  played.lowered.program = {};

  Rehearsal rehearsal;
  rehearsal.result = Describe(scenario, played);
  rehearsal.schedule = std::move(played.schedule);
  rehearsal.timeline = std::move(played.simulation.timeline);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  rehearsal.result.simulator.wall = Seconds(wall.count());
  rehearsal.result.simulator.peak_rss = PeakResidentMemory();
  rehearsal.names = NamesOf(scenario);
  return rehearsal;
}

}  // namespace rehearse
