// In-switch reduction: switches add what they receive and send one result to many.
//
// nvls (one machine, its NVSwitch: NVIDIA's NVLink SHARP, NCCL's "NVLS"), n bytes in all pieces:
//   all-reduce      every member hands n to the switch, which adds; the owner of each p-th takes it
//                   in (n/p) and hands it back (n/p); the switch sends all of it to everybody (n)
//   reduce-scatter  the first two hops; all-gather: the last two
// Each port carries (1 + 1/p)·n each way, instead of a ring's 2(p-1)/p·n: all-reduce takes
// (1 + 1/p)·n/P at rate P.
//
// collnet (across machines, the network's switches: SHARP, NCCL's "CollnetDirect"), g members each:
//   everybody hands chunk j to local j, which adds (n/g to each); local j hands its sum to the
//   network's switches (n/g), gets back the sum over all machines (n/g), and hands it to the other
//   locals (n/g to each)
// Each NIC carries n/g each way: half of what a ring over many machines needs.
//
// Both are pipelines: T = Σ over the m + hops - 1 steps (collectives/lowering/pipeline.h). The
// switches on the way form a tree (collectives/algorithms/switch_tree.h).
#include <algorithm>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/switch_tree.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// ---- nvls ---------------------------------------------------------------------------------------

// The hops of a kind: which of the four it has.
struct NvlsHops {
  bool gathers_sums;  // members to switch to owner
  bool spreads;       // owner to switch to members
};
NvlsHops HopsOf(CollectiveKind kind) {
  return {kind != CollectiveKind::kAllGather, kind != CollectiveKind::kReduceScatter};
}

void NvlsSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const uint32_t m = input.pieces;
  const uint32_t first = position == p ? 0 : position;  // the switch takes part for all members
  const uint32_t last = position == p ? p : position + 1;
  const auto own = [&](uint32_t member) {
    return Chunks{
        .base = 0, .cycle = p * m, .first = member, .count = 1, .stride = static_cast<int32_t>(p)};
  };
  const Chunks all{
      .base = 0, .cycle = p * m, .first = 0, .count = p, .stride = static_cast<int32_t>(p)};
  const NvlsHops hops = HopsOf(input.kind);
  for (uint32_t member = first; member < last; ++member) {
    uint32_t step = 0;
    if (hops.gathers_sums) {
      legs->push_back(InPlace(step++, m, member, p, Combine::kAdd, all));
      legs->push_back(InPlace(step++, m, p, member, Combine::kCopy, own(member)));
    }
    if (hops.spreads) {
      legs->push_back(InPlace(step++, m, member, p, Combine::kCopy, own(member)));
      legs->push_back(InPlace(step++, m, p, member, Combine::kCopy, all));
    }
  }
}

std::vector<Part> NvlsArrange(const GroupOnMachine& group) {
  const auto machines = MembersByMachine(group);
  if (machines.size() > 1) {
    throw Error(fmt::format(
        "algorithm \"nvls\" works inside one machine, but ranks {} and {} are in different ones",
        group.ranks[machines[0][0]], group.ranks[machines[1][0]]));
  }
  Part part = AsTheyAre(group);
  SwitchTree tree = FindSwitchTree(group.router, group.ranks, VertexKind::kNvSwitch, "nvls");
  part.to_switch = std::move(tree.up);
  part.from_switch = std::move(tree.down);
  return {part};
}

Seconds NvlsClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const NvlsHops hops = HopsOf(input.kind);
  const uint32_t count = (hops.gathers_sums ? 2 : 0) + (hops.spreads ? 2 : 0);
  return PipelineTime(input.pieces, count, bytes / input.ranks(), paces);
}

// ---- collnet ------------------------------------------------------------------------------------

void CollnetSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t g = input.extents[0];
  const uint32_t p = input.ranks();
  const uint32_t m = input.pieces;
  const auto chunk = [&](uint32_t local) {
    return Chunks{
        .base = 0, .cycle = g * m, .first = local, .count = 1, .stride = static_cast<int32_t>(g)};
  };
  const uint32_t network = g > 1 ? 1 : 0;  // the hop to the switches
  const auto with_switch = [&](uint32_t member) {
    const uint32_t rail = member % g;
    legs->push_back(InPlace(network, m, member, p + rail, Combine::kAdd, chunk(rail)));
    legs->push_back(InPlace(network + 1, m, p + rail, member, Combine::kCopy, chunk(rail)));
  };
  if (position >= p) {
    for (uint32_t member = position - p; member < p; member += g) with_switch(member);
    return;
  }
  with_switch(position);
  const uint32_t local = position % g;
  const uint32_t machine = position - local;
  for (uint32_t distance = 1; distance < g; ++distance) {
    const uint32_t to = (local + distance) % g;
    const uint32_t from = (local + g - distance) % g;
    legs->push_back(InPlace(0, m, position, machine + to, Combine::kAdd, chunk(to)));
    legs->push_back(InPlace(0, m, machine + from, position, Combine::kAdd, chunk(local)));
    legs->push_back(InPlace(3, m, position, machine + to, Combine::kCopy, chunk(local)));
    legs->push_back(InPlace(3, m, machine + from, position, Combine::kCopy, chunk(from)));
  }
}

std::vector<Part> CollnetArrange(const GroupOnMachine& group) {
  const auto machines = MembersByEqualMachine(group, "collnet");
  if (machines.size() < 2) {
    throw Error(
        "algorithm \"collnet\" adds in the network's switches, but all ranks are in one machine");
  }
  const size_t locals = machines.front().size();
  Part part = AsTheyAre(group);
  part.input.extents = {static_cast<uint32_t>(locals), static_cast<uint32_t>(machines.size())};
  part.order.clear();
  for (const auto& machine : machines) {
    part.order.insert(part.order.end(), machine.begin(), machine.end());
  }
  part.to_switch.resize(group.ranks.size());
  part.from_switch.resize(group.ranks.size());
  for (size_t local = 0; local < locals; ++local) {
    std::vector<uint32_t> rail;
    for (const auto& machine : machines) rail.push_back(group.ranks[machine[local]]);
    SwitchTree tree = FindSwitchTree(group.router, rail, VertexKind::kSwitch, "collnet");
    for (size_t machine = 0; machine < machines.size(); ++machine) {
      part.to_switch[machine * locals + local] = std::move(tree.up[machine]);
      part.from_switch[machine * locals + local] = std::move(tree.down[machine]);
    }
  }
  return {part};
}

Seconds CollnetClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t locals = input.extents[0];
  return PipelineTime(input.pieces, locals > 1 ? 4 : 2, bytes / locals, paces);
}

}  // namespace

Algorithm NvlsRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kNvls,
          "the machine's NVSwitch adds and multicasts",
          {kAllReduce, kAllGather, kReduceScatter},
          {kAllReduce, kAllGather, kReduceScatter},
          NvlsArrange,
          [](const StepInput& input) { return input.ranks() * input.pieces; },
          nullptr,
          NvlsSteps,
          [](const StepInput&) { return 1u; },
          NvlsClosedForm};
}

Algorithm CollnetRow() {
  return {AlgorithmId::kCollnet,
          "the network's switches add (SHARP); scatter and gather in the machine",
          {CollectiveKind::kAllReduce},
          {CollectiveKind::kAllReduce},
          CollnetArrange,
          [](const StepInput& input) { return input.extents[0] * input.pieces; },
          nullptr,
          CollnetSteps,
          [](const StepInput& input) { return input.extents[0]; },
          CollnetClosedForm};
}

}  // namespace rehearse
