// Scenarios on a calibrated machine, and the random steps that calibrations are made
// and judged with.
#include "scenarios/playing/calibrated.h"

#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/backends/host.h"
#include "real/calibration/machine_pace.h"
#include "scenarios/trials/random_step.h"
#include "scenarios/trials/trust.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace calibrated_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Shape = std::tuple<uint64_t, uint64_t, uint64_t>;

std::set<Shape> ShapesOf(const Schedule& schedule) {
  std::set<Shape> shapes;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || compute->kind != ComputeKind::kGemm) continue;
    shapes.insert({compute->gemm.m, compute->gemm.n, compute->gemm.k});
  }
  return shapes;
}

std::vector<RandomStep> Draw(uint32_t index, StepUse use) {
  return DrawSteps(7, index, 2, use, Flops(1e7), Flops(4e9));
}

TEST(RandomStepTest, TheSameSeedDrawsTheSameSteps) {
  const auto first = Draw(3, StepUse::kJudging);
  const auto again = Draw(3, StepUse::kJudging);
  ASSERT_EQ(first.size(), again.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].scenario, again[i].scenario);
  EXPECT_NE(first[0].scenario, Draw(4, StepUse::kJudging)[0].scenario);
}

TEST(RandomStepTest, NoProductThatJudgesWasLearned) {
  std::set<Shape> learned;
  for (uint32_t index = 0; index < 6; ++index) {
    for (const RandomStep& step : Draw(index, StepUse::kLearning))
      learned.merge(ShapesOf(step.schedule));
  }
  for (uint32_t index = 0; index < 6; ++index) {
    for (const RandomStep& step : Draw(index, StepUse::kJudging)) {
      for (const Shape& shape : ShapesOf(step.schedule)) EXPECT_FALSE(learned.count(shape));
    }
  }
}

// A kernel takes 1 ms whatever it does, a collective nothing: a blocking step takes as many
// milliseconds as it has kernels.
Calibration OneMillisecondEach(const Schedule& schedule) {
  Calibration calibration;
  calibration.host_cores = 2;
  calibration.kernels = MeasuredKernels{DType::kFp32, {}};
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr) continue;
    KernelCosts costs;
    costs.kernel = compute->kernel;
    costs.mode = compute->gemm.mode;
    costs.coefficients.assign(TermNames(costs).size(), 0);
    costs.coefficients[0] = 1e-3;
    costs.points = {{WorkOf(*compute, DType::kFp32), Seconds(1e-3)}};
    if (costs.kernel == Kernel::kGemm) costs.points[0].work.gemm.m += 1;
    calibration.kernels->kernels.push_back(costs);
  }
  MeasuredCollectives measured;
  measured.computes_in = DType::kFp32;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    measured.collectives.push_back({kind, 2, {{{Bytes(1), Seconds(0)}, {Bytes(1e9), Seconds(0)}}}});
  calibration.collectives = {measured};
  calibration.origin = {"elsewhere, 2 cores", "2026-11-20", true};
  return calibration;
}

TEST(CalibratedTest, ABlockingStepIsTheSumOfItsMeasuredOps) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  size_t kernels = 0;
  for (const Op& op : step.schedule.roles[0].ops)
    kernels += std::holds_alternative<Compute>(op.work) ? 1 : 0;
  const Prediction prediction = PredictStep(step.schedule, OneMillisecondEach(step.schedule));
  EXPECT_NEAR(prediction.step.value(), 1e-3 * static_cast<double>(kernels), 1e-9);
}

TEST(CalibratedTest, TheResultSaysThatTheCalibrationIsOfAnotherMachine) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  const Prediction prediction = PredictStep(step.schedule, OneMillisecondEach(step.schedule));
  EXPECT_THAT(prediction.notes, Contains(HasSubstr("measured on elsewhere, 2 cores")));
}

TEST(CalibratedTest, TheResultSaysWhatIsOutsideOfWhatWasMeasured) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  Calibration calibration = OneMillisecondEach(step.schedule);
  for (CollectiveCosts& costs : calibration.collectives[0].collectives)
    costs.step.knots = {{Bytes(1e9), Seconds(1e-6)}};
  EXPECT_THAT(PredictStep(step.schedule, calibration).notes,
              Contains(HasSubstr("outside the measured range")));
  calibration.kernels->kernels.resize(1);
  EXPECT_THAT(PredictStep(step.schedule, calibration).notes,
              Contains(HasSubstr("of kinds that were not measured")));
}

TEST(CalibratedTest, WithoutACalibrationNothingIsNotedOrChanged) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  const auto cluster = ReadClusterArgument("local-cpu:ranks=2");
  EXPECT_THAT(CalibrationNotes(step.schedule, *cluster), IsEmpty());
  EXPECT_EQ(AsExecuted(step.schedule, *cluster).roles[0].streams.size(),
            step.schedule.roles[0].streams.size());
}

TrustRow Row(uint32_t network, double predicted, double measured) {
  TrustRow row;
  row.strategy = "4d";
  row.network = network;
  row.predicted = Seconds(predicted);
  row.measured = Seconds(measured);
  row.kept = 1;
  return row;
}

// Network 0: 1 < 2 in both. Network 1: 3 < 4 predicted, but 5 > 4 measured. Across: all four pairs
// agree. So one of two within is wrong, 1 - 1 = 0; overall (5 - 1)/6.
TEST(TrustTest, RanksAreComparedByKendallsTau) {
  TrustReport report;
  report.rows = {Row(0, 1, 1), Row(0, 2, 2), Row(1, 3, 5), Row(1, 4, 4)};
  EXPECT_DOUBLE_EQ(RankCorrelation(report, true), 0);
  EXPECT_DOUBLE_EQ(RankCorrelation(report, false), 4.0 / 6);
}

TEST(TrustTest, StepsThatWereNeverUndisturbedAreListedButNotJudged) {
  TrustReport report;
  report.host = {{"processor", "test"}, {"cores", 2}};
  report.environment = {{"load_average", "0"}, {"scheduling", "other"}};
  report.rows = {Row(0, 1.1, 1), Row(0, 5, 0)};
  report.rows[1].kept = 0;
  EXPECT_EQ(ErrorsOf(report).samples, 1u);
  EXPECT_NEAR(ErrorsOf(report).median, 0.1, 1e-12);
  EXPECT_THAT(ToText(report), HasSubstr("never undisturbed"));
  EXPECT_EQ(ToJson(report)["rows"].size(), 2u);
  const auto rows = ToJson(TableOf(report));
  EXPECT_EQ(rows[0]["status"], "judged");
  EXPECT_NEAR(rows[0]["relative_error"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(rows[1]["reason"], "never undisturbed");
  EXPECT_TRUE(rows[1]["measured_seconds"].is_null());
}

TEST(TrustTest, StepsOfASlowerMachineStandApart) {
  TrustReport report;
  report.host = {{"processor", "test"}, {"cores", 2}};
  report.environment = {{"load_average", "0"}, {"scheduling", "other"}};
  report.rows = {Row(0, 1.02, 1), Row(0, 0.8, 1), Row(0, 0.9, 1)};
  EXPECT_EQ(ErrorsAtPace(report).samples, 3u);  // nobody measured it
  EXPECT_THAT(ToText(report), testing::Not(HasSubstr("as fast as")));
  report.rows[0].pace_before = report.rows[0].pace_after = 1.04;
  report.rows[1].pace_before = 1.0;
  report.rows[1].pace_after = 1.2;
  report.rows[2].pace_before = report.rows[2].pace_after = 0.9;
  EXPECT_EQ(ErrorsAtPace(report).samples, 1u);
  EXPECT_NEAR(ErrorsAtPace(report).largest, 0.02, 1e-12);
  EXPECT_THAT(ToText(report),
              HasSubstr("products took 0.90 to 1.20 times as long. Of the 1 step "));
  EXPECT_EQ(ToJson(report)["share_within_10_percent_at_pace"], 1);
  EXPECT_EQ(ToJson(report)["rows"][1]["pace_after"], 1.2);
  report.rows.erase(report.rows.begin());
  EXPECT_THAT(ToText(report), HasSubstr("expected another calibration"));
}

// Products that took a hundredth of what they take make the machine a hundred times as slow. Only
// the order is asked for: a product that is disturbed takes several times as long.
TEST(TrustTest, APaceIsWhatProductsTakeBesideTheCalibration) {
  KernelCosts costs;
  costs.kernel = Kernel::kGemm;
  const auto point = [](double seconds) {
    KernelPoint one;
    one.work.gemm = {.m = 128, .n = 128, .k = 128};
    one.time = Seconds(seconds);
    return one;
  };
  costs.points = {point(1e-3)};
  MeasuredKernels kernels;
  kernels.kernels = {costs};
  const std::optional<double> pace = MachinePace(kernels, 1).Measure([] { return false; });
  kernels.kernels.front().points = {point(1e-5)};
  const std::optional<double> slower = MachinePace(kernels, 1).Measure([] { return false; });
  EXPECT_FALSE(MachinePace({}, 1).Measure([] { return false; }).has_value());
  if (!pace || !slower) GTEST_SKIP() << "no step was left alone";
  EXPECT_GT(*pace, 0);
  EXPECT_GT(*slower, *pace);
}

TEST(TrustTest, ACalibrationOfAnotherMachineIsRefused) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  EXPECT_THROW(MeasureTrust(OneMillisecondEach(step.schedule), {}), Error);
}

struct StepsTold : ProgressObserver {
  void Done(double parts) override { done = parts; }
  double done = 0;
};

TEST(TrustTest, AStoppedReportIsOfTheStepsThatWereRun) {
  const RandomStep step = Draw(0, StepUse::kJudging)[0];
  Calibration calibration = OneMillisecondEach(step.schedule);
  const HostMachine host = ThisHost();
  calibration.origin.machine = MachineName(host.processor, host.cores);
  StepsTold told;
  TrustOptions options;
  options.kept = 1;
  options.patience = Seconds(0.001);
  options.observer = &told;
  options.is_stopped = [&] { return told.done == 1; };
  const TrustReport report = MeasureTrust(calibration, options);
  EXPECT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(ToJson(report)["left_out"], 41);
  EXPECT_THAT(ToText(report), HasSubstr("Interrupted: 1 of 42 steps."));
  options.is_stopped = [] { return true; };
  EXPECT_THROW(MeasureTrust(calibration, options), Stopped);
}

}  // namespace calibrated_test
}  // namespace rehearse
