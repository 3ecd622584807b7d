// Small schedules for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/lowering/lower.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/schedule.h"
#include "tests/support/random_program.h"
#include "topology/cluster/builder.h"
#include "topology/presets/presets.h"

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

// A random machine: nodes of different sizes and rates behind a switch, with a shared
// uplink for some.
inline std::unique_ptr<Cluster> RandomCluster(Random& random, uint32_t ranks) {
  ClusterBuilder cluster("random");
  const auto preset = Preset("switch", "devices", 1);
  std::vector<uint32_t> kinds = {cluster.AddDeviceSpec(preset->DeviceOf(0))};
  DeviceSpec slow = preset->DeviceOf(0);
  slow.memory_bandwidth = slow.memory_bandwidth * 0.5;
  kinds.push_back(cluster.AddDeviceSpec(slow));
  const uint32_t odd_one = random.Below(3) == 0 ? random.Below(ranks) : ranks;
  const uint32_t weak_link = random.Below(3) == 0 ? random.Below(ranks) : ranks;
  const uint32_t per_node = 1 + random.Below(4);
  Vertex core;
  core.name = "core";
  core.kind = VertexKind::kSwitch;
  const auto center = cluster.AddVertex(core);
  VertexId leaf = center;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank % per_node == 0) {
      Vertex sw;
      sw.name = fmt::format("leaf{}", rank);
      sw.kind = VertexKind::kPcieSwitch;
      sw.node = fmt::format("node{}", rank / per_node);
      leaf = cluster.AddVertex(sw);
      ClusterLink up;
      up.kind = LinkKind::kNetwork;
      up.bandwidth = BytesPerSecond(25e9);
      up.latency = Seconds(2e-6);
      cluster.AddLinks(leaf, center, up);
    }
    Vertex device;
    device.name = fmt::format("gpu{}", rank);
    device.node = fmt::format("node{}", rank / per_node);
    ClusterLink link;
    link.kind = LinkKind::kPcie;
    link.bandwidth = BytesPerSecond(rank == weak_link ? 5e9 : 20e9);
    link.latency = Seconds(1e-6);
    cluster.AddLinks(cluster.AddVertex(device, kinds[rank == odd_one ? 1 : 0]), leaf, link);
  }
  return std::make_unique<Cluster>(cluster.Finish());
}

}  // namespace rehearse::testing
