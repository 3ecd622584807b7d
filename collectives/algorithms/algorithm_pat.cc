// Parallel aggregated trees (NCCL's "PAT", from 2.23 on): every block goes along a binomial tree of
// its own, and what a member passes on in a step is one message. Far steps come first, while blocks
// are few, so that the long ways carry the least. L = ⌈log2 p⌉ steps for any p, over distances
// d = 2^(L-1), ..., 2, 1:
//   all-gather      position r passes on to r + d the blocks of r - o, o < p - d a multiple of 2d
//   reduce-scatter  the same backwards: near steps first, sums instead of copies
//   T = Σ_d (α + c_d·n/(p·B)),  c_d = ⌈(p - d)/2d⌉ blocks;  Σ c_d = p - 1
// NCCL cuts long messages into pieces with fewer blocks each, to fit its buffers; that cost is in
// its model's bandwidth (collectives/nccl/nccl_model.h), not in these steps.
#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

// What is passed on over a distance.
uint32_t Blocks(uint32_t p, uint32_t distance) {
  return (p - distance + 2 * distance - 1) / (2 * distance);
}

void PatSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const uint32_t steps = CeilLog2(p);
  const bool gathers = input.kind == CollectiveKind::kAllGather;
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t distance = 1u << (gathers ? steps - 1 - step : step);
    // The tree's way from `near` to the member `distance` farther from the blocks' owners.
    const auto along = [&](uint32_t near) {
      const uint32_t far = (near + distance) % p;
      const Chunks blocks{.base = 0,
                          .cycle = p,
                          .first = near,
                          .count = Blocks(p, distance),
                          .stride = 0,
                          .spacing = -static_cast<int32_t>(2 * distance)};
      legs->push_back(gathers ? InPlace(step, 1, near, far, Combine::kCopy, blocks)
                              : InPlace(step, 1, far, near, Combine::kAdd, blocks));
    };
    along(position);
    along((position + p - distance) % p);
  }
}

Seconds PatClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t p = input.ranks();
  const uint32_t steps = CeilLog2(p);
  Seconds time;
  for (uint32_t step = 0; step < steps; ++step) {
    const bool gathers = input.kind == CollectiveKind::kAllGather;
    const uint32_t distance = 1u << (gathers ? steps - 1 - step : step);
    time += RoundTime(PaceOf(paces, step), 1, bytes * Blocks(p, distance) / p);
  }
  return time;
}

}  // namespace

Algorithm PatRow() {
  return {AlgorithmId::kPat,
          "a binomial tree for each block, far steps with few blocks first",
          {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter},
          {},
          [](const GroupOnMachine& group) { return std::vector<Part>{AsTheyAre(group)}; },
          ChunkOfEach,
          nullptr,
          PatSteps,
          NoSwitches,
          PatClosedForm};
}

}  // namespace rehearse
