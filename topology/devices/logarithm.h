// A logarithm with the same bits everywhere, and what distances between logarithms take.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/base/error.h"

namespace rehearse {

// Natural logarithm from additions, multiplications and divisions only, so that efficiencies, and
// with them all durations, have the same bits with every C library. n = 2^e·x with x in [1, 2), and
// log x = 2·atanh(s) with s = (x-1)/(x+1) <= 1/3; the series is cut below 1e-10.
inline double Log(uint64_t n) {
  CHECK_GT(n, uint64_t{0});
  constexpr double kLogOfTwo = 0.69314718055994530942;
  const int exponent = std::bit_width(n) - 1;
  const double x = std::ldexp(static_cast<double>(n), -exponent);
  const double s = (x - 1) / (x + 1);
  const double square = s * s;
  double sum = 0;
  for (int odd = 19; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return exponent * kLogOfTwo + 2 * s * sum;
}

inline double Square(double x) { return x * x; }

}  // namespace rehearse
