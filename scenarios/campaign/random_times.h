// Random numbers of a run: the same bits on every machine.
#pragma once

#include <cstdint>

#include "sim/base/random_bits.h"
#include "topology/devices/logarithm.h"

namespace rehearse {

class RandomTimes {
 public:
  explicit RandomTimes(uint64_t seed) : bits_(seed) {}

  // Exponential, with mean 1.
  double Exponential() {
    constexpr double kLogOfRange = 53 * 0.69314718055994530942;
    return kLogOfRange - Log((bits_.Next() >> 11) + 1);
  }
  // Uniform on [0, 1).
  double Share() { return bits_.Share(); }

 private:
  RandomBits bits_;
};

}  // namespace rehearse
