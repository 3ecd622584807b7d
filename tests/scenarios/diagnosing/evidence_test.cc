#include "scenarios/diagnosing/evidence.h"

#include <cmath>

#include <gtest/gtest.h>

namespace rehearse {
namespace evidence_test {

// One row, m = 0.09: the density is that of a normal variable, averaged over the noises.
TEST(EvidenceTest, OfOneRowItIsANormalDensity) {
  const Evidence evidence({{0.3, 28, 0, 0.09}});
  double sum = 0;
  for (const double noise : {0.003, 0.006, 0.0125, 0.025, 0.05, 0.1, 0.2}) {
    const double variance = 0.09 * 0.09 + noise * noise + 1e-9;
    sum += std::exp(-0.1 * 0.1 / (2 * variance)) / std::sqrt(variance);
  }
  EXPECT_NEAR(evidence.LogDensity({0.2}), std::log(sum / 7), 1e-9);
}

// A deviation of one and a half model errors, once or twice: two tables share half of the error, so
// with little noise the distance is 1.5²·2/(1 + 1/2) = 3 of two rows, whose chance by Wilson and
// Hilferty is that of (cbrt(1.5) - 8/9)/(1/3) = 0.767: 0.22.
TEST(EvidenceTest, TablesOfOneMachineErrTogether) {
  const double m = 0.1;
  const Evidence evidence({{1.5 * m, 28, 0, m}, {1.5 * m, 28, 1, m}});
  EXPECT_NEAR(evidence.ChanceOf({0, 0}, 0.003), 0.2215, 0.002);
}

// What is off at one size alone is noise; what is off at neighbours alike is the model's error.
TEST(EvidenceTest, NoiseIsWhatNeighboursDoNotShare) {
  std::vector<Observation> jagged;
  std::vector<Observation> smooth;
  std::vector<double> expected;
  for (int i = 0; i < 12; ++i) {
    jagged.push_back({i % 2 == 0 ? 0.1 : -0.1, 16.0 + i, 0, 0.1});
    smooth.push_back({0.1, 16.0 + i, 0, 0.1});
    expected.push_back(0);
  }
  EXPECT_EQ(Evidence(jagged).NoiseOf(expected), 0.1);
  EXPECT_LE(Evidence(smooth).NoiseOf(expected), 0.0125);
}

TEST(EvidenceTest, TheMeanOfExponentialsHoldsForLargeNumbers) {
  EXPECT_NEAR(LogMeanExp({-2000, -2000}), -2000, 1e-9);
  EXPECT_NEAR(LogMeanExp({1000, 0}), 1000 - std::log(2), 1e-9);
}

TEST(EvidenceTest, PredictionsAreWorthLessAtSmallSizes) {
  EXPECT_EQ(ModelErrorAt(Bytes(8), false), 0.29);
  EXPECT_EQ(ModelErrorAt(Bytes(1e10), true), 0.09);
  // Half way from 8 MiB to 256 MiB by octaves is 2^25.5 bytes.
  EXPECT_NEAR(ModelErrorAt(Bytes(std::exp2(25.5)), false), (0.14 + 0.04) / 2, 1e-9);
}

}  // namespace evidence_test
}  // namespace rehearse
