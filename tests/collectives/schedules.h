// Small schedules for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/lower.h"
#include "sim/schedule.h"
#include "sim/simulate.h"
#include "topology/presets.h"

namespace rehearse::testing {

// One collective of `bytes` on the groups listed; every rank of the cluster is in one of them.
inline Schedule OneCollective(CollectiveKind kind, double bytes,
                              const std::vector<std::vector<uint32_t>>& groups) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("group", groups));
  Role role;
  role.name = "rank";
  role.streams = {{"group", StreamKind::kCommunication}};
  Op op;
  op.name = Name(kind);
  op.stream = StreamId(0);
  Collective collective;
  collective.kind = kind;
  collective.communicator = CommunicatorId(0);
  collective.bytes = Bytes(bytes);
  op.work = collective;
  role.ops.push_back(op);
  schedule.roles.push_back(role);
  size_t ranks = 0;
  for (const auto& group : groups) ranks += group.size();
  schedule.role_of_rank.assign(ranks, 0);
  return schedule;
}

// The time of the step at a fidelity.
inline Seconds StepTime(const Schedule& schedule, const Cluster& cluster, Fidelity fidelity) {
  Router router(cluster);
  const Lowered lowered = Lower(schedule, router, {.fidelity = fidelity, .channels = 0});
  return ToSeconds(Simulate(lowered.program, schedule.ranks()).timeline.step);
}

inline std::unique_ptr<Cluster> Preset(const std::string& name, const std::string& parameter,
                                       uint32_t value) {
  return BuildPreset(name, {{parameter, value}}, {});
}

}  // namespace rehearse::testing
