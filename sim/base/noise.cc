#include "sim/base/noise.h"

#include <algorithm>

namespace rehearse {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace

double Noise(uint64_t seed, NoiseKind kind, uint64_t position) {
  const uint64_t of_seed = SplitMix64(seed).Next();
  const uint64_t of_kind = SplitMix64(of_seed ^ static_cast<uint64_t>(kind)).Next();
  SplitMix64 random(of_kind ^ position);
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.Next() >> 11) * 0x1p-53;
  return std::clamp(sum, -3.0, 3.0);
}

}  // namespace rehearse
