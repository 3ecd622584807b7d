// Chain: a pipeline of m pieces along one path through all members, from the root (broadcast) or to
// it (reduce).
//   T = (m + p - 2)·(α + n/(m·B))
// The first piece takes p-1 hops, the others follow it. This is what SUMMA's panels need: every
// member sends and receives each byte once. With the best number of pieces, m =
// sqrt((p-2)·n/(α·B)),
//   T = (sqrt((p-2)·α) + sqrt(n/B))² + α,
// n/B for long messages.
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/ring_order.h"

namespace rehearse {
namespace {

// The path is the group's shortest ring (collectives/algorithms/ring_order.h), cut at the root, so
// the members of a machine follow each other.
std::vector<Part> ArrangeChain(const GroupOnMachine& group) {
  Part part = AsTheyAre(group);
  const std::vector<std::vector<uint32_t>> machines = MembersByMachine(group);
  if (machines.size() == group.ranks.size() && machines.size() > 2) {
    std::vector<uint32_t> order;
    for (const uint32_t rank : OrderRing(group.router, group.ranks)) {
      const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
      order.push_back(static_cast<uint32_t>(at - group.ranks.begin()));
    }
    part.order = std::move(order);
  } else {
    part.order.clear();
    for (const auto& machine : machines) {
      part.order.insert(part.order.end(), machine.begin(), machine.end());
    }
  }
  std::rotate(part.order.begin(), std::find(part.order.begin(), part.order.end(), group.root),
              part.order.end());
  return {part};
}

Seconds ChainClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  return PipelineTime(input.pieces, input.ranks() - 1, bytes, paces);
}

}  // namespace

void ChainSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const uint32_t m = input.pieces;
  const Chunks pieces{.base = 0, .cycle = m, .first = 0, .count = 1, .stride = 1};
  for (const uint32_t nearer : {position - 1, position}) {  // of the two edges here
    if (nearer >= p - 1) continue;
    if (input.kind == CollectiveKind::kBroadcast) {
      legs->push_back(InPlace(nearer, m, nearer, nearer + 1, Combine::kCopy, pieces));
    } else {
      legs->push_back(InPlace(p - 2 - nearer, m, nearer + 1, nearer, Combine::kAdd, pieces));
    }
  }
}

Algorithm ChainRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kChain,
          "pipelined along one path, as SUMMA needs",
          {kBroadcast, kReduce},
          {kBroadcast, kReduce},
          ArrangeChain,
          ChunkOfPieces,
          nullptr,
          ChainSteps,
          NoSwitches,
          ChainClosedForm};
}

}  // namespace rehearse
