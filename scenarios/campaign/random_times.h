// Random numbers of a run: the same bits on every machine.
#pragma once

#include <cstdint>

#include "topology/devices/logarithm.h"

namespace rehearse {

class RandomTimes {
 public:
  explicit RandomTimes(uint64_t seed) : state_(seed) {}

  // Exponential, with mean 1.
  double Exponential() {
    constexpr double kLogOfRange = 53 * 0.69314718055994530942;
    return kLogOfRange - Log((Next() >> 11) + 1);
  }
  // Uniform on [0, 1).
  double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace rehearse
