#include "topology/devices/speed_spread.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace speed_spread_test {

// For one device the median is the median, and 10 % take 1.2816 standard deviations more.
TEST(SpeedSpreadTest, OneDeviceIsNormallyDistributed) {
  EXPECT_NEAR(SlowestOf(1, 0.5, 0.02), 1, 1e-9);
  EXPECT_NEAR(SlowestOf(1, 0.9, 0.02), 1 + 1.2816 * 0.02, 1e-5);
  EXPECT_NEAR(SlowestOf(1, 0.1, 0.02), 1 - 1.2816 * 0.02, 1e-5);
}

// The median of the largest of n is the quantile 2^(-1/n): for 8 it is 0.917, at 1.385 standard
// deviations, for 1,024 it is 0.99932, at 3.204.
TEST(SpeedSpreadTest, TheSlowestOfManyIsSlower) {
  EXPECT_NEAR(SlowestOf(8, 0.5, 0.01), 1.01385, 1e-4);
  EXPECT_NEAR(SlowestOf(1024, 0.5, 0.01), 1.0320, 1e-4);
  EXPECT_GT(SlowestOf(1024, 0.9, 0.01), SlowestOf(1024, 0.5, 0.01));
}

TEST(SpeedSpreadTest, IsKnownOfGpusOnly) {
  EXPECT_NEAR(SpeedSpread(FindDevice("h100")), 0.08 / 5.4, 1e-4);
  EXPECT_NEAR(SpeedSpread(FindDevice("mi250x-gcd")), 0.08 / 5.4, 1e-4);
  DeviceSpec cpu;
  EXPECT_EQ(SpeedSpread(cpu), 0);
}

}  // namespace speed_spread_test
}  // namespace rehearse
