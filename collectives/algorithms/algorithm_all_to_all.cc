// All-to-all in several steps. n is what one member sends, n/p to each.
//   pairwise  p-1 steps; in step s, position r sends to r+s+1 and receives from r-s-1:
//             T = (p-1)·(α + n/(p·B)). No member ever has more than one partner: the ports are
//             never shared. Sizes may differ.
//   bruck     ⌈log2 p⌉ steps; in step k the blocks whose distance has bit k move on by 2^k:
//             T = Σ_k (α + c_k·n/(p·B)), c_k = how many of 1 ... p-1 have bit k (p/2 for a power of
//             two). Few steps, but a block travels several times: for short messages (Bruck et al.
//             1997). A block on its way with distance d rests at r where it would be if r were its
//             goal: chunk p + (r - d).
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

uint32_t InAndOut(const StepInput& input) { return 2 * input.ranks(); }

Chunks One(uint32_t number) { return {.base = number, .cycle = 1, .first = 0, .count = 1}; }

void CopyOwn(uint32_t p, uint32_t position, std::vector<Leg>* legs) {
  legs->push_back({0, 1, position, position, Combine::kCopy, One(position), One(p + position)});
}

void PairwiseSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  CopyOwn(p, position, legs);
  for (uint32_t distance = 1; distance < p; ++distance) {
    for (const uint32_t from : {position, (position + p - distance) % p}) {
      const uint32_t to = (from + distance) % p;
      legs->push_back({distance - 1, 1, from, to, Combine::kCopy, One(to), One(p + from)});
    }
  }
}

Seconds PairwiseClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t p = input.ranks();
  Seconds time;
  for (uint32_t step = 0; step + 1 < p; ++step) {
    time += RoundTime(PaceOf(paces, step), 1, bytes / p);
  }
  return time;
}

// What `from` passes on in step k: of each run of distances with bit k, the lowest (which has no
// lower bit, and so starts here) and the others (which came here earlier).
void BruckLegs(uint32_t p, uint32_t k, uint32_t from, std::vector<Leg>* legs) {
  const uint32_t bit = 1u << k;
  const uint32_t to = (from + bit) % p;
  for (uint32_t low = bit; low < p; low += 2 * bit) {
    legs->push_back(
        {k, 1, from, to, Combine::kCopy, One((from + low) % p), One(p + (to + p - low) % p)});
    const uint32_t others = std::min(low + bit, p) - low - 1;
    if (others == 0) continue;
    const auto resting_at = [&](uint32_t member) {
      return Chunks{.base = p,
                    .cycle = p,
                    .first = member + p - low - 1,
                    .count = others,
                    .stride = 0,
                    .spacing = -1};
    };
    legs->push_back({k, 1, from, to, Combine::kCopy, resting_at(from), resting_at(to)});
  }
}

void BruckSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  CopyOwn(p, position, legs);
  for (uint32_t k = 0; k < CeilLog2(p); ++k) {
    BruckLegs(p, k, position, legs);
    BruckLegs(p, k, (position + p - (1u << k)) % p, legs);
  }
}

Seconds BruckClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t p = input.ranks();
  Seconds time;
  for (uint32_t k = 0; k < CeilLog2(p); ++k) {
    const uint32_t bit = 1u << k;
    const uint32_t rest = p % (2 * bit);
    const uint32_t blocks = p / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
    time += RoundTime(PaceOf(paces, k), 1, static_cast<double>(blocks) / p * bytes);
  }
  return time;
}

std::vector<Part> PairwiseArrange(const GroupOnMachine& group) { return {AsTheyAre(group)}; }

std::vector<Part> BruckArrange(const GroupOnMachine& group) {
  if (group.sizes_differ) {
    throw Error(
        "algorithm \"bruck\" sends blocks on, and needs equal sizes; direct, pairwise and pxn do "
        "not");
  }
  return {AsTheyAre(group)};
}

}  // namespace

Algorithm PairwiseRow() {
  return {AlgorithmId::kPairwise,
          "one partner after the other",
          {CollectiveKind::kAllToAll},
          {},
          PairwiseArrange,
          InAndOut,
          nullptr,
          PairwiseSteps,
          NoSwitches,
          PairwiseClosedForm};
}

Algorithm BruckRow() {
  return {AlgorithmId::kBruck,
          "log p steps, blocks travel on",
          {CollectiveKind::kAllToAll},
          {},
          BruckArrange,
          InAndOut,
          nullptr,
          BruckSteps,
          NoSwitches,
          BruckClosedForm};
}

}  // namespace rehearse
