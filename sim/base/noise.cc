#include "sim/base/noise.h"

#include <algorithm>

#include "sim/base/random_bits.h"

namespace rehearse {
double Noise(uint64_t seed, NoiseKind kind, uint64_t position) {
  const uint64_t of_seed = RandomBits(seed).Next();
  const uint64_t of_kind = RandomBits(of_seed ^ static_cast<uint64_t>(kind)).Next();
  RandomBits random(of_kind ^ position);
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.Next() >> 11) * 0x1p-53;
  return std::clamp(sum, -3.0, 3.0);
}

}  // namespace rehearse
