#include "scenarios/rehearsal.h"

#include <chrono>

#include <sys/resource.h>

#include "collectives/lower.h"
#include "sim/schedule_check.h"
#include "sim/simulate.h"
#include "workloads/planner.h"

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

Rehearsal Rehearse(const Scenario& scenario, const RehearsalOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Cluster& cluster = *scenario.cluster;

  Rehearsal rehearsal;
  rehearsal.schedule =
      PlanStep(scenario.network, scenario.training, scenario.strategy, scenario.strategy_place);
  CheckSchedule(rehearsal.schedule);
  CheckBuffers(rehearsal.schedule);

  Router router(cluster, scenario.routing);
  Lowered lowered = Lower(rehearsal.schedule, router, scenario.lowering);
  Simulation simulation = Simulate(lowered.program, rehearsal.schedule.ranks(),
                                   {.record_link_loads = options.record_link_loads});
  lowered.program = {};
  rehearsal.timeline = std::move(simulation.timeline);
  rehearsal.timeline.representative = std::move(lowered.representative);

  const DeviceSpec& device = cluster.DeviceOf(0);
  Result& result = rehearsal.result;
  result = Summarize(rehearsal.schedule, rehearsal.timeline,
                     PeakOf(device, scenario.training.precision));
  result.scenario = scenario.name;
  result.fidelity = Name(scenario.lowering.fidelity);
  result.memory_capacity = device.memory;
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
