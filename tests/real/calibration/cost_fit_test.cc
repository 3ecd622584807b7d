#include "real/calibration/cost_fit.h"

#include <gtest/gtest.h>

#include "real/kernels/numbers.h"

namespace rehearse {
namespace cost_fit_test {

// Terms 1 and x at x = 1, 2, 4, 8 with times 3 + 2x.
TEST(CostFitTest, AnExactSumIsFound) {
  const std::vector<std::vector<double>> terms = {{1, 1}, {1, 2}, {1, 4}, {1, 8}};
  const std::vector<double> coefficients = FitNonNegative(terms, {5, 7, 11, 19});
  EXPECT_NEAR(coefficients[0], 3, 1e-6);
  EXPECT_NEAR(coefficients[1], 2, 1e-6);
}

// Times fall with the second term, so its best coefficient without the rule would be negative.
TEST(CostFitTest, NoTermMakesATimeShorter) {
  const std::vector<std::vector<double>> terms = {{1, 1}, {1, 2}, {1, 3}};
  const std::vector<double> coefficients = FitNonNegative(terms, {3, 2, 1});
  EXPECT_EQ(coefficients[1], 0);
  EXPECT_GT(coefficients[0], 0);
}

// Nine points on t = 10 + x and one that is a hundred times too long: the rest decides.
TEST(CostFitTest, OneWildPointDoesNotBendTheFit) {
  std::vector<std::vector<double>> terms;
  std::vector<double> times;
  for (int x = 1; x <= 10; ++x) {
    terms.push_back({1, static_cast<double>(x)});
    times.push_back(x == 5 ? 1500 : 10 + x);
  }
  const std::vector<double> coefficients = FitNonNegative(terms, times);
  EXPECT_NEAR(coefficients[0], 10, 0.5);
  EXPECT_NEAR(coefficients[1], 1, 0.1);
}

KernelSamples Product(uint64_t m, uint64_t n, uint64_t k, double seconds) {
  KernelSamples sample;
  sample.kernel = Kernel::kGemm;
  sample.work.gemm = {m, n, k, GemmMode::kNN, 1};
  sample.accepted = {Seconds(seconds), Seconds(2 * seconds), Seconds(seconds)};
  return sample;
}

// t = 1 µs + 2mnk · 10 ps, exactly: held-out shapes are predicted from the others as well.
TEST(CostFitTest, ProductsAreJudgedByShapesThatTheFitHasNotSeen) {
  std::vector<KernelSamples> samples;
  for (uint64_t i = 0; i < 24; ++i) {
    const uint64_t m = 16 * (1 + HashAt(1, i) % 32);
    const uint64_t n = 16 * (1 + HashAt(2, i) % 32);
    const uint64_t k = 16 * (1 + HashAt(3, i) % 32);
    samples.push_back(Product(m, n, k, 1e-6 + 2e-11 * static_cast<double>(m * n * k)));
  }
  const std::vector<KernelFit> fits = FitKernels(samples);
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_EQ(fits[0].held_out.samples, 6u);  // every fourth of 24
  EXPECT_LT(fits[0].held_out.largest, 0.01);
}

TEST(CostFitTest, EqualWorkIsOnePointOfTheMedian) {
  const std::vector<KernelFit> fits = FitKernels({Product(16, 16, 16, 1), Product(16, 16, 16, 1)});
  ASSERT_EQ(fits[0].costs.points.size(), 1u);
  EXPECT_EQ(fits[0].costs.points[0].time, Seconds(1));  // of 1 1 1 1 2 2
  EXPECT_EQ(fits[0].held_out.samples, 0u);              // too few to judge
}

// A step costs 1 µs up to 4 KiB and 9 µs from there on (a protocol switch). A straight line through
// these is off by multiples at small sizes; a curve with knots on both sides only between the
// knots.
TEST(CostFitTest, AStraightLineLosesASwitchThatKnotsKeep) {
  std::vector<CollectiveSamples> samples;
  for (double bytes = 64; bytes <= 1 << 20; bytes *= 2) {
    for (const double step : {bytes, bytes * 1.5}) {
      const double time = (step <= 4096 ? 1e-6 : 9e-6) + step * 1e-10;
      samples.push_back({CollectiveKind::kAllReduce, 2, Bytes(2 * step), {Seconds(2 * time)}});
    }
  }
  const std::vector<CollectiveFit> fits = FitCollectives(samples);
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_LT(fits[0].held_out.median, 0.01);
  EXPECT_GT(fits[0].line_errors.largest, 2);
  EXPECT_GT(fits[0].line.r_squared, 0.9);  // and yet it looks fine
}

TEST(CostFitTest, QuantilesAreNearestRanks) {
  std::vector<Seconds> samples;
  for (int i = 10; i >= 1; --i) samples.emplace_back(i);
  const Quantiles quantiles = QuantilesOf(samples);
  EXPECT_EQ(quantiles.tenth, Seconds(1));
  EXPECT_EQ(quantiles.median, Seconds(5));
  EXPECT_EQ(quantiles.ninetieth, Seconds(9));
}

}  // namespace cost_fit_test
}  // namespace rehearse
