// Seeded noise that is the same to the bit on every machine: for jitter
// (collectives/lowering/perturbation.h).
#pragma once

#include <cstdint>

namespace rehearse {

enum class NoiseKind : uint64_t { kCompute = 1, kLink = 2 };

// Nearly a standard normal variable (mean 0, variance 1) that depends on seed, kind and position
// alone: the sum of 12 numbers uniform on [0, 1), less 6, cut off at ±3. It needs no logarithm.
double Noise(uint64_t seed, NoiseKind kind, uint64_t position);

}  // namespace rehearse
