// Stretches of a role in which each layer does the same as the one before it: the way there, the
// way back, and whatever else goes through layers one by one. What a step with more such layers
// takes follows from one with few (scenarios/playing/few_layers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/memory.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// From op `begin` on, `bodies` pieces of `size` ops. Each does what the one before it does, with
// the same kernels and bytes on the same streams, one layer later (or each one layer earlier).
struct Stretch {
  uint32_t begin = 0;
  uint32_t size = 0;
  uint32_t bodies = 0;  // at least three

  uint32_t BeginOf(uint32_t body) const { return begin + body * size; }
};

// In order, disjoint. Nothing if they do not contain everything that the layer does, or if the role
// keeps what it repeats only once.
std::optional<std::vector<Stretch>> FindStretches(const Role& role, int32_t layer);

// What MemoryOf() would say if each stretch were longer by so many bodies: parameters, gradients
// and optimizer state are those of the role as it is. Nothing if bodies gain or lose different
// amounts, or if something gained on the way is not lost again.
std::optional<MemoryUse> MemoryOfLonger(const Role& role, const std::vector<Stretch>& stretches,
                                        uint32_t more);

}  // namespace rehearse
