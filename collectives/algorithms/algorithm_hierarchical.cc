// Hierarchical: rings inside the machines and rings across them. N machines with g members each;
// all-reduce is
//   reduce-scatter inside  g-1 steps of n/g
//   reduce-scatter across  N-1 steps of n/(g·N), on g rails side by side
//   all-gather across      the same back
//   all-gather inside      the same back
//   T = 2(g-1)·(α_in + n/(g·b_in)) + 2(N-1)·(α_out + n/(g·N·b_out))
// with b the rate of each edge while all move; with one NIC for each member b_out is its rate.
// Reduce-scatter is the first half, all-gather the second. 2(g-1) + 2(N-1) steps instead of a flat
// ring's 2(g·N-1). Positions: machine·g + local. Chunk local·N + machine is the block of position
// (machine, local).
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

void HierarchicalSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t locals = input.extents[0];
  const uint32_t machines = input.extents[1];
  const uint32_t p = locals * machines;
  const uint32_t local = position % locals;
  const uint32_t machine = position / locals;
  uint32_t step = 0;
  const auto inside = [&](Combine combine) {
    if (locals == 1) return;
    const uint32_t lag = combine == Combine::kAdd ? 1 : 0;
    for (const uint32_t from : {local, (local + locals - 1) % locals}) {
      legs->push_back(InPlace(step, locals - 1, machine * locals + from,
                              machine * locals + (from + 1) % locals, combine,
                              {.base = 0,
                               .cycle = p,
                               .first = (from + locals - lag) * machines,
                               .count = machines,
                               .stride = -static_cast<int32_t>(machines)}));
    }
    step += locals - 1;
  };
  const auto across = [&](Combine combine) {
    if (machines == 1) return;
    const uint32_t lag = combine == Combine::kAdd ? 1 : 0;
    for (const uint32_t from : {machine, (machine + machines - 1) % machines}) {
      legs->push_back(InPlace(step, machines - 1, from * locals + local,
                              (from + 1) % machines * locals + local, combine,
                              {.base = local * machines,
                               .cycle = machines,
                               .first = from + machines - lag,
                               .count = 1,
                               .stride = -1}));
    }
    step += machines - 1;
  };
  if (input.kind != CollectiveKind::kAllGather) {
    inside(Combine::kAdd);
    across(Combine::kAdd);
  }
  if (input.kind != CollectiveKind::kReduceScatter) {
    across(Combine::kCopy);
    inside(Combine::kCopy);
  }
}

Block HierarchicalBlockOfChunk(const StepInput& input, uint32_t /*position*/, uint32_t chunk) {
  const uint32_t machines = input.extents[1];
  const uint32_t owner = chunk % machines * input.extents[0] + chunk / machines;
  return {owner, owner};
}

// A part for each channel inside a machine, if all machines have the same channels; members with
// the same place in their machine's ring form a rail.
std::vector<Part> ArrangeHierarchical(const GroupOnMachine& group) {
  const auto machines = MembersByEqualMachine(group, "hierarchical");
  const uint32_t locals = static_cast<uint32_t>(machines.front().size());
  Part plain = AsTheyAre(group);
  plain.input.extents = {locals, static_cast<uint32_t>(machines.size())};
  plain.order.clear();
  for (const auto& machine : machines) {
    plain.order.insert(plain.order.end(), machine.begin(), machine.end());
  }
  if (locals < 3) return {plain};
  std::vector<Part> parts;
  std::vector<uint32_t> first_machine;
  for (const uint32_t member : machines.front()) first_machine.push_back(group.ranks[member]);
  for (const Channel& channel : group.finder.Find(first_machine, group.channels)) {
    Part part = plain;
    part.share = channel.share;
    part.order.clear();
    for (const auto& machine : machines) {
      for (const uint32_t rank : channel.ranks) {
        const auto at = std::find(first_machine.begin(), first_machine.end(), rank);
        part.order.push_back(machine[static_cast<size_t>(at - first_machine.begin())]);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Seconds HierarchicalClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t locals = input.extents[0];
  const uint32_t machines = input.extents[1];
  Seconds time;
  uint32_t round = 0;
  const auto inside = [&] {
    if (locals > 1) time += RoundTime(PaceOf(paces, round++), locals - 1, bytes / locals);
  };
  const auto across = [&] {
    if (machines > 1) {
      time += RoundTime(PaceOf(paces, round++), machines - 1, bytes / (locals * machines));
    }
  };
  if (input.kind != CollectiveKind::kAllGather) {
    inside();
    across();
  }
  if (input.kind != CollectiveKind::kReduceScatter) {
    across();
    inside();
  }
  return time;
}

}  // namespace

Algorithm HierarchicalRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kHierarchical,
          "reduce-scatter in the machine, all-reduce across, all-gather in the machine",
          {kAllReduce, kAllGather, kReduceScatter},
          {},
          ArrangeHierarchical,
          ChunkOfEach,
          HierarchicalBlockOfChunk,
          HierarchicalSteps,
          NoSwitches,
          HierarchicalClosedForm};
}

}  // namespace rehearse
