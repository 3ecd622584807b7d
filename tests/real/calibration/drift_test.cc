#include "real/calibration/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "real/calibration/calibrate.h"
#include "sim/base/error.h"

namespace rehearse {
namespace drift_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Products of three sizes, and sums of two sizes, each so many times as long as usual.
Calibration Calibrated(double products, double sums) {
  Calibration calibration;
  KernelCosts costs;
  costs.kernel = Kernel::kGemm;
  for (const uint64_t size : {64, 128, 256}) {
    KernelPoint point;
    point.work.gemm = {size, size, size, GemmMode::kNN, 1};
    point.time = Seconds(1e-6 * static_cast<double>(size) * products);
    costs.points.push_back(point);
  }
  calibration.kernels = MeasuredKernels{DType::kFp32, {costs}};
  MeasuredCollectives measured;
  measured.collectives.push_back(
      {CollectiveKind::kAllReduce,
       2,
       {{{Bytes(64), Seconds(1e-6 * sums)}, {Bytes(128), Seconds(2e-6 * sums)}}}});
  calibration.collectives.push_back(measured);
  return calibration;
}

TEST(DriftTest, WhatTakesLongerThanBeforeHasDrifted) {
  const std::vector<Drift> drifts = DriftBetween(Calibrated(1, 1), Calibrated(1.05, 1.3));
  ASSERT_EQ(drifts.size(), 2u);
  EXPECT_EQ(drifts[0].what, "gemm NN fp32");
  EXPECT_EQ(drifts[0].points, 3u);
  EXPECT_NEAR(drifts[0].median, 1.05, 1e-12);
  EXPECT_FALSE(drifts[0].IsLarge());
  EXPECT_EQ(drifts[1].what, "all-reduce of 2 among 2");
  EXPECT_TRUE(drifts[1].IsLarge());
  EXPECT_THAT(ToText(drifts), HasSubstr("1 of 2 drifted by more than 10 %"));
  EXPECT_EQ(ToJson(drifts)["drifts"][1]["drifted"], true);
}

TEST(DriftTest, WhatBecameFasterHasDriftedToo) {
  EXPECT_TRUE(DriftBetween(Calibrated(1, 1), Calibrated(0.8, 1))[0].IsLarge());
  EXPECT_THAT(ToText(DriftBetween(Calibrated(1, 1), Calibrated(1, 1))),
              HasSubstr("Nothing drifted"));
}

TEST(DriftTest, OnlyWhatIsInBothIsCompared) {
  Calibration fewer = Calibrated(1, 1);
  fewer.collectives.clear();
  fewer.kernels->kernels[0].points.resize(1);
  EXPECT_EQ(DriftBetween(Calibrated(1, 1), fewer).size(), 1u);
  EXPECT_EQ(DriftBetween(Calibrated(1, 1), fewer)[0].points, 1u);
  fewer.kernels.reset();
  EXPECT_THROW(DriftBetween(Calibrated(1, 1), fewer), Error);
}

// As calibrate writes them, without the measurements.
Calibration Fitted(double held_out, double copies_after) {
  Calibration calibration;
  calibration.fit = nlohmann::ordered_json::parse(R"({"kernels": [
      {"kernel": "gemm", "mode": "NN", "dtype": "fp32", "held_out_errors": {"samples": 5}},
      {"kernel": "norm", "dtype": "fp32", "held_out_errors": {"samples": 5, "median": 0.5}}]})");
  calibration.fit["kernels"][0]["held_out_errors"]["median"] = held_out;
  calibration.about["noise"]["copies_bytes_per_second"] = {1e10, copies_after};
  return calibration;
}

// Of three schedules, one has no step and one has two, which are 1 ms and 3 ms long.
TEST(DoubtsTest, FewStepsThatWereNotWaitedForSpeakAgainstIt) {
  Calibration calibration = Fitted(0.01, 1e10);
  calibration.about["probes"] = nlohmann::ordered_json::parse(R"([
      {"name": "a", "kept": 15, "few": false},
      {"name": "b", "kept": 2, "few": true, "waited_no_longer": true},
      {"name": "c", "kept": 0, "few": true, "waited_no_longer": true}])");
  calibration.samples = nlohmann::ordered_json::parse(
      R"([{"seconds": [0.001, 0.003], "few": [0.001, 0.003]}, {"seconds": [1, 2, 3, 4, 5]}])");
  EXPECT_THAT(
      DoubtsOf(calibration),
      ElementsAre(
          "so few steps were left alone that it was not waited for more: of 3 schedules, 1 have "
          "none and 1 fewer than 5, whose longest times are 3.00 times their shortest in the "
          "median"));
  // With patience, few steps are only counted.
  calibration.about["probes"][1].erase("waited_no_longer");
  calibration.about["probes"][2].erase("waited_no_longer");
  EXPECT_TRUE(DoubtsOf(calibration).empty());
}

TEST(DoubtsTest, ProductsThatDoNotFitAndMemoryThatChangedSpeakAgainstACalibration) {
  EXPECT_TRUE(DoubtsOf(Fitted(0.09, 1.05e10)).empty());
  EXPECT_THAT(DoubtsOf(Fitted(0.14, 1e10)),
              ElementsAre("products that were held out are off in the median, NN fp32 by 14 %"));
  EXPECT_THAT(DoubtsOf(Fitted(0.01, 0.8e10)),
              ElementsAre(HasSubstr("memory was copied at 10 GB/s before and at 8 GB/s after")));
}

}  // namespace drift_test
}  // namespace rehearse
