#include "sim/base/noise.h"

#include <cmath>

#include <gtest/gtest.h>

namespace rehearse {
namespace noise_test {

// Of 100,000 numbers the mean is 0 within 5/√100,000 = 0.016 and the deviation 1 within 5 %:
// cutting off at 3 takes away less than 1 % of the variance.
TEST(NoiseTest, HasTheStatedMeanAndDeviationAndIsCutOff) {
  double sum = 0;
  double squares = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const double z = Noise(1, NoiseKind::kCompute, i);
    ASSERT_LE(std::abs(z), 3);
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / 100'000, 0, 0.016);
  EXPECT_NEAR(std::sqrt(squares / 100'000), 1, 0.05);
}

TEST(NoiseTest, SeedKindAndPositionDecide) {
  const double z = Noise(1, NoiseKind::kCompute, 0);
  EXPECT_EQ(Noise(1, NoiseKind::kCompute, 0), z);
  EXPECT_NE(Noise(2, NoiseKind::kCompute, 0), z);
  EXPECT_NE(Noise(1, NoiseKind::kLink, 0), z);
  EXPECT_NE(Noise(1, NoiseKind::kCompute, 1), z);
}

TEST(NoiseTest, TheFirstNumbersAreTheSameOnEveryMachine) {
  EXPECT_NEAR(Noise(1, NoiseKind::kCompute, 0), -0.78466, 1e-6);
  EXPECT_NEAR(Noise(1, NoiseKind::kCompute, 1), 0.26022544, 1e-8);
}

}  // namespace noise_test
}  // namespace rehearse
