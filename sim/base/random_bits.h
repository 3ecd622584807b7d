// Random numbers that are the same bits on every machine.
#pragma once

#include <cstdint>

namespace rehearse {

class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform on [0, 1).
  double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Uniform among 0, 1, ..., count - 1, where count > 0.
  uint32_t Below(uint32_t count) { return static_cast<uint32_t>(Share() * count); }

 private:
  uint64_t state_;
};

}  // namespace rehearse
