// What the parts of the model of packets count with.
#pragma once

#include <cmath>
#include <cstdint>

namespace rehearse {

inline constexpr uint32_t kControlBytes = 64;  // an acknowledgement, a pause, a trimmed header
inline constexpr double kReferenceRate = 5e9;  // bytes per second: 40 Gb/s, DCQCN's thresholds

// Steele's SplitMix64: spreads all bits.
constexpr uint64_t Scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline int64_t Duration(double time_per_byte, uint32_t bytes) {
  return std::llround(time_per_byte * bytes);
}

}  // namespace rehearse
