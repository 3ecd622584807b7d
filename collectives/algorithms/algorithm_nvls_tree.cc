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
#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/binary_tree.h"
#include "collectives/algorithms/switch_tree.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

BinaryTree TreeOf(const StepInput& input) {
  return BinaryTree(input.extents[1], false, input.variant == 1);
}

uint32_t Hops(const StepInput& input) { return 4 + 2 * TreeOf(input).Height(); }

void Steps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t g = input.extents[0];
  const uint32_t p = input.ranks();
  const uint32_t m = input.pieces;
  const BinaryTree tree = TreeOf(input);
  const uint32_t height = tree.Height();
  const auto stride = static_cast<int32_t>(g);
  const Chunks all{.base = 0, .cycle = g * m, .first = 0, .count = g, .stride = stride};
  const auto own = [&](uint32_t member) {
    return Chunks{.base = 0, .cycle = g * m, .first = member % g, .count = 1, .stride = stride};
  };
  const auto with_switch = [&](uint32_t member) {
    const uint32_t added = p + member / g;
    legs->push_back(InPlace(0, m, member, added, Combine::kAdd, all));
    legs->push_back(InPlace(1, m, added, member, Combine::kCopy, own(member)));
    legs->push_back(InPlace(2 + 2 * height, m, member, added, Combine::kCopy, own(member)));
    legs->push_back(InPlace(3 + 2 * height, m, added, member, Combine::kCopy, all));
  };
  if (position >= p) {
    for (uint32_t local = 0; local < g; ++local) with_switch((position - p) * g + local);
    return;
  }
  with_switch(position);
  const uint32_t local = position % g;
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

std::vector<Part> Arrange(const GroupOnMachine& group) {
  constexpr const char* kName = "nvls-tree";
  const auto machines = MembersByEqualMachine(group, kName);
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
  for (const auto& machine : machines) {
    std::vector<uint32_t> ranks;
    for (const uint32_t member : machine) ranks.push_back(group.ranks[member]);
    const SwitchTree tree = FindSwitchTree(group.router, ranks, VertexKind::kNvSwitch, kName);
    part.order.insert(part.order.end(), machine.begin(), machine.end());
    part.to_switch.insert(part.to_switch.end(), tree.up.begin(), tree.up.end());
    part.from_switch.insert(part.from_switch.end(), tree.down.begin(), tree.down.end());
  }
  std::vector<Part> parts(2, part);
  parts[1].input.variant = 1;
  return parts;
}

}  // namespace

Algorithm NvlsTreeRow() {
  return {"nvls-tree",
          "NVLSTree",
          "NVSwitches add in the machines, double binary trees across",
          {CollectiveKind::kAllReduce},
          {CollectiveKind::kAllReduce},
          Arrange,
          [](const StepInput& input) { return input.extents[0] * input.pieces; },
          nullptr,
          Steps,
          [](const StepInput& input) { return input.extents[1]; },
          [](const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
            return PipelineTime(input.pieces, Hops(input), bytes / input.extents[0], paces);
          }};
}

}  // namespace rehearse
