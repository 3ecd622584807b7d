#include "collectives/algorithms/steps.h"

#include <algorithm>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"

namespace rehearse {

uint32_t ChunkCount(const Algorithm& algorithm, const StepInput& input) {
  return algorithm.chunks(input);
}

Block BlockOf(const Algorithm& algorithm, const StepInput& input, uint32_t position,
              uint32_t chunk) {
  const uint32_t p = input.ranks();
  if (input.kind == CollectiveKind::kAllToAll) {
    if (algorithm.block != nullptr) return algorithm.block(input, position, chunk);
    CHECK_LT(chunk, 2 * p);
    return chunk < p ? Block{position, chunk} : Block{chunk - p, position};
  }
  CHECK(input.kind == CollectiveKind::kAllGather || input.kind == CollectiveKind::kReduceScatter);
  if (algorithm.block != nullptr) return algorithm.block(input, position, chunk % p);
  return {chunk % p, chunk % p};
}

std::vector<Leg> StepsOf(const Algorithm& algorithm, const StepInput& input, uint32_t position) {
  CHECK_LT(position, input.ranks() + algorithm.switches(input));
  std::vector<Leg> legs;
  algorithm.steps(input, position, &legs);
  const auto earlier = [](const Leg& a, const Leg& b) { return a.step < b.step; };
  if (!std::is_sorted(legs.begin(), legs.end(), earlier))
    std::stable_sort(legs.begin(), legs.end(), earlier);
  return legs;
}

std::vector<Leg> MessagesOf(const Algorithm& algorithm, const StepInput& input, uint32_t position) {
  std::vector<Leg> messages;
  for (const Leg& leg : StepsOf(algorithm, input, position)) {
    for (uint32_t i = 0; i < leg.steps; ++i) {
      Leg message = leg;
      message.step = leg.step + i;
      message.steps = 1;
      message.read.first = leg.read.At(i, 0) - leg.read.base;
      message.write.first = leg.write.At(i, 0) - leg.write.base;
      messages.push_back(message);
    }
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Leg& a, const Leg& b) { return a.step < b.step; });
  return messages;
}

}  // namespace rehearse
