// In-switch reduction inside machines, trees across (NCCL's "NVLSTree"): N machines of g members,
// each with an NVSwitch that adds. Every machine does nvls
// (collectives/algorithms/algorithm_in_switch.cc) around an all-reduce across:
//   each member hands its n to the machine's switch, which adds (n); local j takes in the j-th g-th
//   (n/g); the locals j of all machines reduce it up a binary tree and spread it down again (n/g a
//   hop; H = ⌊log2 N⌋ hops each way, collectives/algorithms/binary_tree.h); local j hands it back
//   to the switch (n/g), which sends all of it to everybody (n).
// Two parts: the two trees of a double binary tree, with half of the bytes each, so that each NIC
// carries n/g each way, and each port (1 + 1/g)·n. A pipeline of 4 + 2H hops:
//   T = Σ over the m + hops - 1 steps (collectives/lowering/pipeline.h).
// Where a machine has lost the NIC of a local (collectives/algorithms/crowded_places.h), fewer
// locals than g reduce across: the first of them in each machine. The variant of a part counts
// those that do not, twice, and adds 1 for the other tree.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/binary_tree.h"
#include "collectives/algorithms/crowded_places.h"
#include "collectives/algorithms/switch_tree.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

BinaryTree NvlsTreeOf(const StepInput& input) {
  return BinaryTree(input.extents[1], false, input.variant % 2 == 1);
}

// Locals of each machine that reduce across.
uint32_t HeadsOf(const StepInput& input) { return input.extents[0] - input.variant / 2; }

uint32_t Hops(const StepInput& input) { return 4 + 2 * NvlsTreeOf(input).Height(); }

void NvlsTreeSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t g = input.extents[0];
  const uint32_t p = input.ranks();
  const uint32_t m = input.pieces;
  const BinaryTree tree = NvlsTreeOf(input);
  const uint32_t height = tree.Height();
  const uint32_t heads = HeadsOf(input);
  const auto stride = static_cast<int32_t>(heads);
  const Chunks all{.base = 0, .cycle = heads * m, .first = 0, .count = heads, .stride = stride};
  const auto own = [&](uint32_t member) {
    return Chunks{.base = 0, .cycle = heads * m, .first = member % g, .count = 1, .stride = stride};
  };
  const auto with_switch = [&](uint32_t member) {
    const uint32_t added = p + member / g;
    legs->push_back(InPlace(0, m, member, added, Combine::kAdd, all));
    if (member % g < heads) {
      legs->push_back(InPlace(1, m, added, member, Combine::kCopy, own(member)));
      legs->push_back(InPlace(2 + 2 * height, m, member, added, Combine::kCopy, own(member)));
    }
    legs->push_back(InPlace(3 + 2 * height, m, added, member, Combine::kCopy, all));
  };
  if (position >= p) {
    for (uint32_t local = 0; local < g; ++local) with_switch((position - p) * g + local);
    return;
  }
  with_switch(position);
  const uint32_t local = position % g;
  if (local >= heads) return;
  const auto in_tree = [&](uint32_t child) {
    const uint32_t parent = tree.Parent(child);
    const uint32_t below = child * g + local;
    const uint32_t above = parent * g + local;
    legs->push_back(
        InPlace(2 + tree.HeightOf(child), m, below, above, Combine::kAdd, own(position)));
    legs->push_back(
        InPlace(2 + height + tree.DepthOf(parent), m, above, below, Combine::kCopy, own(position)));
  };
  const uint32_t node = position / g;
  if (tree.Parent(node) != BinaryTree::kNone) in_tree(node);
  for (const uint32_t child : tree.Children(node)) in_tree(child);
}

// The members at these places first, the others after them.
void MoveToFront(const std::vector<uint32_t>& places, std::vector<uint32_t>* members) {
  std::vector<uint32_t> moved;
  for (const uint32_t place : places) moved.push_back((*members)[place]);
  for (uint32_t place = 0; place < members->size(); ++place)
    if (!std::binary_search(places.begin(), places.end(), place))
      moved.push_back((*members)[place]);
  *members = std::move(moved);
}

std::vector<Part> ArrangeNvlsTree(const GroupOnMachine& group) {
  constexpr const char* kName = "nvls-tree";
  auto machines = MembersByEqualMachine(group, kName);
  const size_t locals = machines.front().size();
  if (machines.size() < 2 || locals < 2) {
    throw Error(fmt::format(
        "algorithm \"{}\" needs several machines with several ranks each, but the group has {} "
        "machine{} with {} rank{} each",
        kName, machines.size(), machines.size() == 1 ? "" : "s", locals, locals == 1 ? "" : "s"));
  }
  Part part = AsTheyAre(group);
  part.share = 0.5;
  part.input.extents = {static_cast<uint32_t>(locals), static_cast<uint32_t>(machines.size())};
  part.order.clear();
  const std::vector<uint32_t> heads = PlacesWithNics(group.router, group.ranks, machines);
  if (heads.size() < locals) {
    part.input.variant = 2 * static_cast<uint32_t>(locals - heads.size());
    for (auto& machine : machines) MoveToFront(heads, &machine);
  }
  for (const auto& machine : machines) {
    std::vector<uint32_t> ranks;
    for (const uint32_t member : machine) ranks.push_back(group.ranks[member]);
    const SwitchTree tree = FindSwitchTree(group.router, ranks, VertexKind::kNvSwitch, kName);
    part.order.insert(part.order.end(), machine.begin(), machine.end());
    part.to_switch.insert(part.to_switch.end(), tree.up.begin(), tree.up.end());
    part.from_switch.insert(part.from_switch.end(), tree.down.begin(), tree.down.end());
  }
  std::vector<Part> parts(2, part);
  ++parts[1].input.variant;
  return parts;
}

}  // namespace

Algorithm NvlsTreeRow() {
  return {AlgorithmId::kNvlsTree,
          "NVSwitches add in the machines, double binary trees across",
          {CollectiveKind::kAllReduce},
          {CollectiveKind::kAllReduce},
          ArrangeNvlsTree,
          [](const StepInput& input) { return HeadsOf(input) * input.pieces; },
          nullptr,
          NvlsTreeSteps,
          [](const StepInput& input) { return input.extents[1]; },
          [](const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
            return PipelineTime(input.pieces, Hops(input), bytes / HeadsOf(input), paces);
          }};
}

}  // namespace rehearse
