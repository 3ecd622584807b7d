// Hashes that spread flows over equal ways: the same on every machine and compiler.
#pragma once

#include <cstdint>

namespace rehearse {

// Mixes all bits of x into all bits of the result (the finaliser of SplitMix64: Steele, Lea
// and Flood 2014).
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The flow from one rank to another.
constexpr uint64_t FlowHash(uint64_t seed, uint32_t from, uint32_t to) {
  return Mix(Mix(seed) ^ (uint64_t{from} << 32 | to));
}

}  // namespace rehearse
