// Doubling: each step doubles what a member knows, which takes the fewest steps possible.
//   all-gather  step k: position r sends the min(2^k, p-2^k) blocks from r on to r-2^k, for any p:
//               T = ⌈log2 p⌉·α + (p-1)/p·n/B (Bruck et al. 1997)
//   barrier     the same without data: ⌈log2 p⌉·α (dissemination; Hensgen, Finkel & Manber 1988)
//   all-reduce  everything in every step, with the partner whose position differs in bit k; where p
//               is not a power of two, the last p - 2^L positions first add theirs to the first
//               ones', and get the sum in the end: T = (L + 2[p > 2^L])·(α + n/B), L = ⌊log2 p⌋
#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

void Reduce(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const uint32_t core = std::bit_floor(p);
  const bool is_extra = position >= core;
  const bool has_extra = position + core < p;
  const uint32_t other = is_extra ? position - core : position + core;
  uint32_t step = 0;
  const auto between = [&](uint32_t from, uint32_t to, Combine combine) {
    legs->push_back(InPlace(step, 1, from, to, combine, Chunks()));
  };
  if (p > core) {
    if (is_extra) between(position, other, Combine::kAdd);
    if (has_extra) between(other, position, Combine::kAdd);
    ++step;
  }
  for (uint32_t bit = 1; bit < core; bit *= 2, ++step) {
    if (is_extra) continue;
    between(position, position ^ bit, Combine::kAdd);
    between(position ^ bit, position, Combine::kAdd);
  }
  if (is_extra) between(other, position, Combine::kCopy);
  if (has_extra) between(position, other, Combine::kCopy);
}

void DoublingSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  if (input.kind == CollectiveKind::kAllReduce) {
    Reduce(input, position, legs);
  } else {
    DisseminationSteps(input, position, 0, legs);
  }
}

uint32_t DoublingChunks(const StepInput& input) {
  return input.kind == CollectiveKind::kAllReduce ? 1 : input.ranks();
}

Seconds DoublingClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t p = input.ranks();
  Seconds time;
  if (input.kind == CollectiveKind::kAllReduce) {
    const uint32_t rounds = std::bit_width(p) - 1 + (std::has_single_bit(p) ? 0 : 2);
    for (uint32_t k = 0; k < rounds; ++k) time += RoundTime(PaceOf(paces, k), 1, bytes);
    return time;
  }
  for (uint32_t k = 0; k < CeilLog2(p); ++k) {
    const double blocks =
        input.kind == CollectiveKind::kBarrier ? 0 : std::min(1u << k, p - (1u << k));
    time += RoundTime(PaceOf(paces, k), 1, blocks / p * bytes);
  }
  return time;
}

}  // namespace

void DisseminationSteps(const StepInput& input, uint32_t position, uint32_t step,
                        std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const bool has_data = input.kind != CollectiveKind::kBarrier;
  for (uint32_t distance = 1; distance < p; distance *= 2, ++step) {
    const uint32_t count = has_data ? std::min(distance, p - distance) : 0;
    for (const uint32_t from : {position, (position + distance) % p}) {
      legs->push_back(InPlace(step, 1, from, (from + p - distance) % p, Combine::kCopy,
                              {.base = 0, .cycle = p, .first = from, .count = count}));
    }
  }
}

Algorithm DoublingRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kDoubling,
          "distances double, for any number of ranks: the fewest steps",
          {kAllReduce, kAllGather, kBarrier},
          {},
          [](const GroupOnMachine& group) { return std::vector<Part>{AsTheyAre(group)}; },
          DoublingChunks,
          nullptr,
          DoublingSteps,
          NoSwitches,
          DoublingClosedForm};
}

}  // namespace rehearse
