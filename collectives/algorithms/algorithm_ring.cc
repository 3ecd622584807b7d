// Rings. Every member sends to the next one in every step, one p-th of the part's n
// bytes at a time:
//   reduce-scatter  p-1 steps: in step s, position r passes on the sum of chunk r-1-s; r ends with
//                   chunk r
//   all-gather      p-1 steps: in step s, position r passes on chunk r-s
//   all-reduce      one after the other
//   T = S·(α + n/(p·B)), S = 2(p-1) for all-reduce, p-1 else (Patarasuk & Yuan 2009)
// On a machine that carries every edge at B that is 2(p-1)/p·n/B, the least that any algorithm
// needs. Broadcast and reduce go around the ring from (to) the root as a pipeline of m pieces:
//   T = (m + p - 2)·(α + n/(m·B))
// "ring" runs the rings of collectives/algorithms/channels.h, "ring-both" each of them in both
// directions with half of its bytes, which doubles the bandwidth where a ring uses links one way
// only (a torus).
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/ring.h"

namespace rehearse {
namespace {

bool IsPipeline(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

uint32_t RingChunks(const StepInput& input) {
  return IsPipeline(input.kind) ? input.pieces : input.ranks();
}

void RingLegs(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  if (IsPipeline(input.kind)) return ChainSteps(input, position, legs);
  const uint32_t p = input.ranks();
  uint32_t step = 0;
  const auto around = [&](Combine combine, uint32_t lag) {
    for (const uint32_t from : {position, (position + p - 1) % p}) {
      legs->push_back(
          InPlace(step, p - 1, from, (from + 1) % p, combine,
                  {.base = 0, .cycle = p, .first = from + p - lag, .count = 1, .stride = -1}));
    }
    step += p - 1;
  };
  if (input.kind != CollectiveKind::kAllGather) around(Combine::kAdd, 1);
  if (input.kind != CollectiveKind::kReduceScatter) around(Combine::kCopy, 0);
}

Seconds RingClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  if (IsPipeline(input.kind)) {
    return PipelineTime(input.pieces, input.ranks() - 1, bytes, paces);
  }
  return RoundTime(PaceOf(paces, 0), RingSteps(input.kind, input.ranks()), bytes / input.ranks());
}

// A channel as a part; the root, if there is one, stands first.
std::vector<Part> ArrangeRing(const GroupOnMachine& group, bool both_ways) {
  std::vector<Part> parts;
  for (const Channel& channel : group.finder.Find(group.ranks, group.channels)) {
    Part part;
    part.share = channel.share;
    part.input.kind = group.kind;
    part.input.extents = {static_cast<uint32_t>(channel.ranks.size())};
    for (const uint32_t rank : channel.ranks) {
      const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
      part.order.push_back(static_cast<uint32_t>(at - group.ranks.begin()));
    }
    if (IsPipeline(group.kind)) {
      std::rotate(part.order.begin(), std::find(part.order.begin(), part.order.end(), group.root),
                  part.order.end());
    }
    if (both_ways) part.share /= 2;
    parts.push_back(part);
    if (!both_ways) continue;
    std::reverse(part.order.begin() + 1, part.order.end());
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Algorithm RingRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kRing,
          "around rings, one or many channels; a pipeline for broadcast and reduce",
          {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce},
          {kBroadcast, kReduce},
          [](const GroupOnMachine& group) { return ArrangeRing(group, false); },
          RingChunks,
          nullptr,
          RingLegs,
          NoSwitches,
          RingClosedForm};
}

Algorithm BothWaysRingRow() {
  Algorithm row = RingRow();
  row.id = AlgorithmId::kRingBoth;
  row.summary = "every ring in both directions, half of the bytes each";
  row.arrange = [](const GroupOnMachine& group) { return ArrangeRing(group, true); };
  return row;
}

}  // namespace rehearse
