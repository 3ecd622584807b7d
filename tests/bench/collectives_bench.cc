// Planning and lowering collectives of many ranks: what it costs before anything is played.
#include <numeric>
#include <string>

#include <benchmark/benchmark.h>

#include "collectives/lowering/lower.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

struct Machine {
  const char* preset;
  std::map<std::string, uint32_t> parameters;
};

// One collective of 256 MiB over all ranks of the machine.
Schedule OneCollective(const char* algorithm, CollectiveKind kind, uint32_t ranks) {
  Schedule schedule;
  std::vector<uint32_t> group(ranks);
  std::iota(group.begin(), group.end(), 0u);
  schedule.communicators.push_back(Communicator::Explicit("group", {group}));
  Role role;
  role.streams = {{"group", StreamKind::kCommunication}};
  Collective collective;
  collective.kind = kind;
  collective.communicator = CommunicatorId(0);
  collective.bytes = Bytes(268435456);
  collective.algorithm = ParseAlgorithm(algorithm);
  Op op;
  op.stream = StreamId(0);
  op.work = collective;
  role.ops.push_back(op);
  schedule.roles.push_back(role);
  schedule.role_of_rank.assign(ranks, 0);
  return schedule;
}

void PlanAndLower(benchmark::State& state, const char* algorithm, CollectiveKind kind,
                  const Machine& machine, Fidelity fidelity) {
  const auto cluster = BuildPreset(machine.preset, machine.parameters, {});
  const Schedule schedule = OneCollective(algorithm, kind, cluster->device_count());
  size_t tasks = 0;
  for (auto _ : state) {
    Router router(*cluster);  // routes are found anew
    tasks = Lower(schedule, router, {.fidelity = fidelity}).program.tasks.size();
  }
  state.counters["ranks"] = cluster->device_count();
  state.counters["tasks"] = static_cast<double>(tasks);
}

const Machine kSwitch = {"switch", {{"devices", 1024}}};
const Machine kBoxes = {"dgx-a100", {{"nodes", 128}}};
const Machine kHoppers = {"dgx-h100", {{"nodes", 128}}};
const Machine kRack = {"gb200-nvl72", {{"racks", 1}}};
const Machine kTorus = {"tpu-v4", {{"x", 8}, {"y", 8}, {"z", 16}}};

// All of it, in milliseconds: channels or trees, routes, folding, tasks.
#define PLAN(algorithm, kind, machine, fidelity)                                           \
  BENCHMARK_CAPTURE(PlanAndLower, algorithm##_##kind##_##machine##_##fidelity, #algorithm, \
                    CollectiveKind::kind, machine, Fidelity::fidelity)                     \
      ->Unit(benchmark::kMillisecond)

PLAN(ring, kAllReduce, kSwitch, kFluid);
PLAN(ring, kAllReduce, kBoxes, kFluid);
PLAN(tree, kAllReduce, kSwitch, kFluid);
PLAN(tree, kAllReduce, kBoxes, kFluid);
PLAN(doubling, kAllReduce, kSwitch, kFluid);
PLAN(hierarchical, kAllReduce, kBoxes, kFluid);
PLAN(collnet, kAllReduce, kBoxes, kFluid);
PLAN(bucket, kAllReduce, kTorus, kFluid);

PLAN(nvls, kAllReduce, kRack, kFluid);
PLAN(direct, kAllReduce, kRack, kFluid);
PLAN(pairwise, kAllToAll, kBoxes, kFluid);
PLAN(chain, kBroadcast, kSwitch, kFluid);
PLAN(pat, kAllGather, kSwitch, kFluid);
BENCHMARK_CAPTURE(PlanAndLower, nvls_tree_hoppers_fluid, "nvls-tree", CollectiveKind::kAllReduce,
                  kHoppers, Fidelity::kFluid)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanAndLower, halving_doubling_switch_fluid, "halving-doubling",
                  CollectiveKind::kAllReduce, kSwitch, Fidelity::kFluid)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanAndLower, halving_doubling_boxes_fluid, "halving-doubling",
                  CollectiveKind::kAllReduce, kBoxes, Fidelity::kFluid)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanAndLower, ring_both_switch_fluid, "ring-both", CollectiveKind::kAllReduce,
                  kSwitch, Fidelity::kFluid)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlanAndLower, halving_doubling_switch_step, "halving-doubling",
                  CollectiveKind::kAllReduce, kSwitch, Fidelity::kStep)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse
