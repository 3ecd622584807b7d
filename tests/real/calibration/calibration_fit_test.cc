#include "real/calibration/calibration_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace calibration_fit_test {

using ::testing::HasSubstr;

TEST(CalibrationFitTest, ErrorsAreSummedUpByNearestRank) {
  // Of four, the 2nd is the first with half of them at or below it, the 4th the first with nine
  // tenths.
  const ErrorSummary summary = SummarizeErrors({0.4, 0.1, 0.3, 0.2});
  EXPECT_EQ(summary.samples, 4u);
  EXPECT_EQ(summary.median, 0.2);
  EXPECT_EQ(summary.ninetieth, 0.4);
  EXPECT_EQ(summary.largest, 0.4);
  EXPECT_EQ(SummarizeErrors({}).samples, 0u);
}

Trial RingOfFour() {
  Trial trial;
  trial.groups = {{0, 1, 2, 3}};
  return trial;
}

// A ring of 4 on 25 GB/s links of 2 us takes 6·(2 us + n/(4·25 GB/s·e)) + o. Times made with e =
// 0.64 and o = 7 us.
std::vector<NcclRow> MadeRows() {
  std::vector<NcclRow> rows;
  for (double bytes = 1024; bytes < 1e9; bytes *= 3) {
    const double seconds = 6 * (2e-6 + bytes / (4 * 25e9 * 0.64)) + 7e-6;
    rows.push_back({Bytes(bytes), Seconds(seconds)});
  }
  return rows;
}

TEST(CalibrationFitTest, FindsTheNumbersThatTimesWereMadeWith) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  const Calibration calibration = FitCalibration(*cluster, {{RingOfFour(), MadeRows()}});
  ASSERT_EQ(calibration.links.size(), 1u);
  EXPECT_EQ(calibration.links[0].kind, LinkKind::kNetwork);
  EXPECT_EQ(calibration.links[0].bandwidth, BytesPerSecond(25e9));
  EXPECT_NEAR(calibration.links[0].efficiency, 0.64, 1e-9);  // on the grid of 0.002
  EXPECT_NEAR(calibration.collective_overhead->value(), 7e-6, 1e-8);
  EXPECT_LT(calibration.fit["held_out_errors_from_1_mib"]["largest"].get<double>(), 1e-3);
  // With these figures the held-out samples are met.
  const auto fitted = ApplyCalibration(*cluster, calibration);
  const std::vector<NcclRow> rows = MadeRows();
  const std::vector<Seconds> predicted = Predict(*fitted, RingOfFour(), rows);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(predicted[i] / rows[i].time, 1, 1e-3) << rows[i].bytes.value();
}

// A log of a machine whose launch time grows with channels: 0.7 of the links, 30 us and 1.5 us a
// channel.
TEST(CalibrationFitTest, SeesWhetherLaunchingGoesByChannels) {
  Trial trial;
  trial.groups = {{0, 1, 2, 3, 4, 5, 6, 7}};
  trial.algorithm = AlgorithmId::kAuto;
  trial.protocol = Protocol::kAuto;
  std::vector<NcclRow> rows;
  for (double bytes = 4096; bytes < 1e9; bytes *= 4) rows.push_back({Bytes(bytes), Seconds(1)});
  const auto cluster = ReadClusterArgument("dgx-a100");
  Calibration truth;
  truth.links = {{LinkKind::kNvLink, BytesPerSecond(300e9), 0.7, {}}};
  truth.collective_overhead = Seconds(30e-6);
  truth.channel_overhead = Seconds(1.5e-6);
  const std::vector<Seconds> times = Predict(*ApplyCalibration(*cluster, truth), trial, rows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].time = times[i];
  const Calibration found = FitCalibration(*cluster, {{trial, rows}});
  EXPECT_NEAR(found.links[0].efficiency, 0.7, 1e-9);
  EXPECT_NEAR(found.collective_overhead->value(), 30e-6, 2e-8);
  EXPECT_NEAR(found.channel_overhead->value(), 1.5e-6, 1e-9);
}

// Every third time is ten times too long: relative errors count at most 1, so the others decide.
TEST(CalibrationFitTest, AFewWildSamplesDoNotDecide) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  std::vector<NcclRow> rows = MadeRows();
  for (size_t i = 0; i < rows.size(); i += 6) rows[i].time *= 10;
  const Calibration calibration = FitCalibration(*cluster, {{RingOfFour(), rows}});
  EXPECT_NEAR(calibration.links[0].efficiency, 0.64, 0.0101);
}

// As MadeRows, of these sizes.
std::vector<NcclRow> MadeRowsOf(const std::vector<double>& sizes) {
  std::vector<NcclRow> rows;
  for (const double bytes : sizes)
    rows.push_back({Bytes(bytes), Seconds(6 * (2e-6 + bytes / (4 * 25e9 * 0.64)) + 7e-6)});
  return rows;
}

// One row determines one number: the small one launching, the large one the links. The cluster's
// own prediction of the large one is a third too short.
TEST(CalibrationFitTest, OfTwoRowsBothAreMet) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  for (const std::vector<double>& sizes :
       {std::vector<double>{1024, 256 << 20}, std::vector<double>{256 << 20, 1024}}) {
    const std::vector<NcclRow> rows = MadeRowsOf(sizes);
    const Calibration calibration = FitCalibration(*cluster, {{RingOfFour(), rows}});
    ASSERT_EQ(calibration.links.size(), 1u);
    EXPECT_NEAR(calibration.links[0].efficiency, 0.64, 1e-9);
    EXPECT_NEAR(calibration.collective_overhead->value(), 7e-6, 1e-8);
    EXPECT_EQ(calibration.fit["fitted_on"], 2);
    EXPECT_TRUE(calibration.fit["remarks"].empty());
    EXPECT_LT(calibration.fit["mean_error"].get<double>(), 1e-3);
    EXPECT_GT(calibration.fit["mean_error_without"].get<double>(), 0.3);
  }
}

// 64 bytes take 19 us, 15 ps of it on the links: any efficiency fits.
TEST(CalibrationFitTest, SmallRowsDoNotTellTheEfficiency) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  const Calibration calibration =
      FitCalibration(*cluster, {{RingOfFour(), MadeRowsOf({8, 16, 64})}});
  EXPECT_TRUE(calibration.links.empty());
  EXPECT_NEAR(calibration.collective_overhead->value(), 7e-6, 1e-8);
  EXPECT_EQ(calibration.fit["remarks"][0],
            "the efficiency of the links is not fitted: these times do not determine it");
}

// 1 GiB takes 101 ms: 7 us more or less make no difference.
TEST(CalibrationFitTest, LargeRowsDoNotTellLaunching) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  for (const std::vector<double>& sizes :
       {std::vector<double>{1 << 30}, std::vector<double>{256 << 20, 1 << 30}}) {
    const Calibration calibration = FitCalibration(*cluster, {{RingOfFour(), MadeRowsOf(sizes)}});
    ASSERT_EQ(calibration.links.size(), 1u);
    EXPECT_NEAR(calibration.links[0].efficiency, 0.64, 0.0021);
    EXPECT_FALSE(calibration.collective_overhead.has_value());
    EXPECT_EQ(calibration.fit["remarks"][0],
              "the launch overhead is not fitted: these times do not determine it");
  }
}

// The cluster meets three of seven rows; the four that are used in the fit are three times too
// long. Without a fit the errors are 4·2/3 in all; if those four are met, the other three are each
// off by 2 and count as 1. So 38 % against 43 %.
TEST(CalibrationFitTest, AFitThatIsWorseThanNoneIsRefused) {
  const auto cluster = ReadClusterArgument("switch:devices=4");
  std::vector<NcclRow> rows = MadeRowsOf({1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9});
  const std::vector<Seconds> own = Predict(*cluster, RingOfFour(), rows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].time = (i % 2 == 0 ? 3 : 1) * own[i];
  const Calibration calibration = FitCalibration(*cluster, {{RingOfFour(), rows}});
  EXPECT_TRUE(calibration.links.empty());
  EXPECT_FALSE(calibration.collective_overhead.has_value());
  EXPECT_FALSE(calibration.channel_overhead.has_value());
  EXPECT_NEAR(calibration.fit["mean_error_without"].get<double>(), 4 * (2.0 / 3) / 7, 1e-6);
  const std::string remark = calibration.fit["remarks"][0];
  EXPECT_THAT(remark, HasSubstr("the fit is rejected: its mean error is 4"));
  EXPECT_THAT(remark, HasSubstr("without it 38.1 %"));
  // Whoever uses it is told why it is empty.
  try {
    ReadCalibration(JsonDocument::FromText(ToJson(calibration).dump(), "fit.json").Root());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the calibration changes nothing: the fit is rejected"));
  }
}

}  // namespace calibration_fit_test
}  // namespace rehearse
