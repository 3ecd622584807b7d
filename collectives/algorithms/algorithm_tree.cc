// Double binary tree (Sanders, Speck & Träff 2009) over machines, with a chain inside each, as
// NCCL's "Tree".
//
// Each of two trees (collectives/algorithms/binary_tree.h) has half of the bytes. The head of a
// machine (its first position) is in the tree; the others follow it as a chain.
//   reduce      up the chains, then up the tree: hop g-1-j from place j of a chain, hop g-1+h from
//               a machine of height h
//   broadcast   down the tree, then down the chains
//   all-reduce  one after the other: 2(g-1+H) hops, H = ⌊log2 N⌋; both are under way, for different
//               pieces
// With a root there is one hop more.
//   T = Σ over the m + hops - 1 steps of a pipeline (collectives/lowering/pipeline.h)
// In the middle of an all-reduce each port carries n/2·(2 + 1 + 1) each way, so that long messages
// take 2n/P at rate P; short ones take hops·α.
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/binary_tree.h"
#include "collectives/algorithms/crowded_places.h"
#include "collectives/algorithms/linked_ring.h"

namespace rehearse {
namespace {

bool HasRoot(CollectiveKind kind) { return kind != CollectiveKind::kAllReduce; }

BinaryTree TreeOf(const StepInput& input) {
  return BinaryTree(input.extents[1], HasRoot(input.kind), input.variant == 1);
}

uint32_t HopsOneWay(const StepInput& input) {
  return input.extents[0] - 1 + TreeOf(input).Height();
}

void TreeSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t g = input.extents[0];
  const uint32_t m = input.pieces;
  const BinaryTree tree = TreeOf(input);
  const uint32_t node = position / g;
  const uint32_t place = position % g;
  const Chunks pieces{.base = 0, .cycle = m, .first = 0, .count = 1, .stride = 1};
  const bool reduces = input.kind != CollectiveKind::kBroadcast;
  const bool spreads = input.kind != CollectiveKind::kReduce;
  const uint32_t down = reduces ? HopsOneWay(input) : 0;  // the first hop of the way down
  const uint32_t depth = tree.DepthOf(node);

  // An edge of the tree joins two heads, a machine's and its parent's; an edge of a chain joins a
  // place and the one before it.
  const auto in_tree = [&](uint32_t child) {
    const uint32_t parent = tree.Parent(child);
    if (reduces) {
      legs->push_back(
          InPlace(g - 1 + tree.HeightOf(child), m, child * g, parent * g, Combine::kAdd, pieces));
    }
    if (spreads) {
      legs->push_back(
          InPlace(down + tree.DepthOf(parent), m, parent * g, child * g, Combine::kCopy, pieces));
    }
  };
  const auto in_chain = [&](uint32_t farther) {
    const uint32_t far = node * g + farther;
    if (reduces) legs->push_back(InPlace(g - 1 - farther, m, far, far - 1, Combine::kAdd, pieces));
    if (spreads) {
      legs->push_back(InPlace(down + depth + farther - 1, m, far - 1, far, Combine::kCopy, pieces));
    }
  };
  if (place == 0) {
    if (tree.Parent(node) != BinaryTree::kNone) in_tree(node);
    for (const uint32_t child : tree.Children(node)) in_tree(child);
  }
  if (place > 0) in_chain(place);
  if (place + 1 < g) in_chain(place + 1);
}

// Each channel (one for each member of a machine, as many as the machine with the fewest has) has
// both trees, with its own heads: the order inside the machines is rotated, as that of rings, and
// follows the same links.
// Inside one machine a channel is a ring cut open. If machines differ in size, every rank counts as
// a machine of its own.
std::vector<Part> ArrangeTree(const GroupOnMachine& group) {
  const bool has_root = HasRoot(group.kind);
  std::vector<std::vector<uint32_t>> machines = MembersByMachine(group);
  Part part = AsTheyAre(group);
  std::vector<Part> parts;
  if (machines.size() == 1) {
    for (const Channel& channel : group.finder.Find(group.ranks, group.channels)) {
      part.share = channel.share;
      part.input.extents = {static_cast<uint32_t>(group.ranks.size()), 1};
      part.order.clear();
      for (const uint32_t rank : channel.ranks) {
        const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
        part.order.push_back(static_cast<uint32_t>(at - group.ranks.begin()));
      }
      if (has_root) {
        std::rotate(part.order.begin(), std::find(part.order.begin(), part.order.end(), group.root),
                    part.order.end());
      }
      parts.push_back(part);
    }
    return parts;
  }
  const bool equal = std::all_of(machines.begin(), machines.end(), [&](const auto& machine) {
    return machine.size() == machines.front().size();
  });
  if (!equal) {
    std::vector<std::vector<uint32_t>> single;
    for (const auto& machine : machines) {
      for (const uint32_t member : machine) single.push_back({member});
    }
    machines = std::move(single);
  }
  const auto is_root = [&](uint32_t member) { return member == group.root; };
  if (has_root) {  // the root's machine comes first
    const auto home = std::find_if(machines.begin(), machines.end(), [&](const auto& machine) {
      return std::any_of(machine.begin(), machine.end(), is_root);
    });
    std::rotate(machines.begin(), home, machines.end());
  }
  const std::vector<Joined> joined = SortAlongLinks(group.router, group.ranks, &machines);
  if (has_root) {  // and the root is the first there
    std::vector<uint32_t>& first = machines.front();
    std::rotate(first.begin(), std::find_if(first.begin(), first.end(), is_root), first.end());
  }
  const uint32_t g = static_cast<uint32_t>(machines.front().size());
  std::vector<uint32_t> heads = PlacesWithNics(group.router, group.ranks, machines);
  if (group.channels > 0 && heads.size() > group.channels) heads.resize(group.channels);
  part.input.extents = {g, static_cast<uint32_t>(machines.size())};
  part.share = 0.5 / static_cast<double>(heads.size());
  for (const uint32_t channel : heads) {
    part.order.clear();
    for (size_t node = 0; node < machines.size(); ++node) {
      // The root's own machine cannot be entered anywhere else.
      const uint32_t turn = has_root && node == 0 ? 0 : channel;
      AppendInTurn(machines[node], turn, joined[node], channel, &part.order);
    }
    for (part.input.variant = 0; part.input.variant < 2; ++part.input.variant) {
      parts.push_back(part);
    }
  }
  return parts;
}

Seconds TreeClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t ways = input.kind == CollectiveKind::kAllReduce ? 2 : 1;
  return PipelineTime(input.pieces, ways * HopsOneWay(input), bytes, paces);
}

}  // namespace

Algorithm TreeRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kTree,
          "double binary tree across machines, chains inside, pipelined",
          {kAllReduce, kBroadcast, kReduce},
          {kAllReduce, kBroadcast, kReduce},
          ArrangeTree,
          ChunkOfPieces,
          nullptr,
          TreeSteps,
          NoSwitches,
          TreeClosedForm};
}

}  // namespace rehearse
