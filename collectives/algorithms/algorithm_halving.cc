// Recursive halving and doubling (Rabenseifner 2004): a reduce-scatter in which what is sent halves
// in each step, then an all-gather in which it doubles.
//   T = 2⌈log2 p⌉·α + 2·(p-1)/p·n/B for all-reduce, half of that for its two halves
// If p is a power of two, partners differ in one bit of their position, the lowest first, so that
// most bytes go to the nearest partner (half of the data in step 0, a quarter in step 1, ...);
// chunks are numbered with the bits reversed, which makes what is sent contiguous. For any other p,
// position r adds in what r-2^k sends, the largest distance first: the dissemination of
// collectives/algorithms/algorithm_doubling.cc run backwards, in as many steps and with as many
// bytes as the formula says. No member is idle and none is left over.
#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

uint32_t ReverseBits(uint32_t value, uint32_t bits) {
  uint32_t reversed = 0;
  for (uint32_t i = 0; i < bits; ++i) reversed |= ((value >> i) & 1u) << (bits - 1 - i);
  return reversed;
}

// The leg between `from` and its partner across bit k. In reduce-scatter it carries the half of
// from's chunks that the partner keeps, in all-gather those that from has.
Leg AcrossBit(uint32_t step, uint32_t bits, uint32_t k, uint32_t from, bool scatters) {
  const uint32_t to = from ^ (1u << k);
  const uint32_t count = 1u << (bits - 1 - k);
  const uint32_t owner = ReverseBits(scatters ? to : from, bits);
  // The k+1 lowest bits of the position are the leading bits of the chunk's number.
  const uint32_t first = owner & ~(count - 1);
  return InPlace(step, 1, from, to, scatters ? Combine::kAdd : Combine::kCopy,
                 {.base = 0, .cycle = 1u << bits, .first = first, .count = count, .stride = 0});
}

void PowerOfTwo(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t bits = CeilLog2(input.ranks());
  uint32_t step = 0;
  const auto exchange = [&](uint32_t k, bool scatters) {
    legs->push_back(AcrossBit(step, bits, k, position, scatters));
    legs->push_back(AcrossBit(step, bits, k, position ^ (1u << k), scatters));
    ++step;
  };
  if (input.kind != CollectiveKind::kAllGather) {
    for (uint32_t k = 0; k < bits; ++k) exchange(k, true);
  }
  if (input.kind != CollectiveKind::kReduceScatter) {
    for (uint32_t k = bits; k-- > 0;) exchange(k, false);
  }
}

void AnyNumber(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  uint32_t step = 0;
  if (input.kind != CollectiveKind::kAllGather) {
    for (uint32_t k = CeilLog2(p); k-- > 0; ++step) {
      const uint32_t distance = 1u << k;
      for (const uint32_t from : {position, (position + p - distance) % p}) {
        const uint32_t to = (from + distance) % p;
        legs->push_back(InPlace(
            step, 1, from, to, Combine::kAdd,
            {.base = 0, .cycle = p, .first = to, .count = std::min(distance, p - distance)}));
      }
    }
  }
  if (input.kind != CollectiveKind::kReduceScatter) DisseminationSteps(input, position, step, legs);
}

void HalvingSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  if (std::has_single_bit(input.ranks())) {
    PowerOfTwo(input, position, legs);
  } else {
    AnyNumber(input, position, legs);
  }
}

Block HalvingBlockOfChunk(const StepInput& input, uint32_t /*position*/, uint32_t chunk) {
  const uint32_t p = input.ranks();
  const uint32_t owner = std::has_single_bit(p) ? ReverseBits(chunk, CeilLog2(p)) : chunk;
  return {owner, owner};
}

Seconds HalvingClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t p = input.ranks();
  const uint32_t rounds = CeilLog2(p);
  const bool halves_first = input.kind != CollectiveKind::kAllGather;
  const uint32_t all = input.kind == CollectiveKind::kAllReduce ? 2 * rounds : rounds;
  Seconds time;
  for (uint32_t i = 0; i < all; ++i) {
    // The distance in the dissemination; a power of two moves as many blocks, in the same order.
    const uint32_t k = halves_first && i < rounds ? rounds - 1 - i : i % rounds;
    const uint32_t blocks = std::min(1u << k, p - (1u << k));
    time += RoundTime(PaceOf(paces, i), 1, static_cast<double>(blocks) / p * bytes);
  }
  return time;
}

}  // namespace

Algorithm HalvingDoublingRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kHalvingDoubling,
          "halves what is sent, then doubles it (Rabenseifner), for any number of ranks",
          {kAllReduce, kAllGather, kReduceScatter},
          {},
          [](const GroupOnMachine& group) { return std::vector<Part>{AsTheyAre(group)}; },
          ChunkOfEach,
          HalvingBlockOfChunk,
          HalvingSteps,
          NoSwitches,
          HalvingClosedForm};
}

}  // namespace rehearse
