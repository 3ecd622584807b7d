#include "topology/devices/speed_spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kVariation = 0.08;   // between whiskers
constexpr double kQuartile = 0.6745;  // of a normal distribution, in standard deviations
constexpr double kWhiskers = 2 * (kQuartile + 1.5 * 2 * kQuartile);

// How many standard deviations a normal variable exceeds with this probability.
double Exceeded(double probability) {
  double low = -40;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double SpeedSpread(const DeviceSpec& device) { return IsGpu(device) ? kVariation / kWhiskers : 0; }

double SlowestOf(uint32_t count, double probability, double spread) {
  CHECK_GT(count, 0u);
  CHECK(probability > 0 && probability < 1);
  // All devices are quicker with probability (1 - exceeded)^count.
  const double exceeded = -std::expm1(std::log(probability) / count);
  return std::max(0.0, 1 + spread * Exceeded(exceeded));
}

}  // namespace rehearse
