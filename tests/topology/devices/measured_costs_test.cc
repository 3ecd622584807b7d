#include "topology/devices/measured_costs.h"

#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/schedule/kernel.h"
#include "topology/devices/measured_costs_json.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace measured_costs_test {

Compute Product(uint64_t m, uint64_t n, uint64_t k, GemmMode mode = GemmMode::kNN) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.kernel = Kernel::kGemm;
  compute.dtype = DType::kFp32;
  compute.gemm = {m, n, k, mode, 1};
  compute.flops = FlopsOf(compute.gemm);
  return compute;
}

Compute MemoryOp(Kernel kernel, double bytes, DType dtype = DType::kFp32) {
  Compute compute;
  compute.kernel = kernel;
  compute.dtype = dtype;
  compute.bytes = Bytes(bytes);
  return compute;
}

// Products at 1 GFLOP/s except for 64 x 64 x 64, which was measured to take twice that; copies at 1
// GB/s and 1 µs.
MeasuredKernels SampleKernels() {
  KernelCosts product;
  product.kernel = Kernel::kGemm;
  product.coefficients = {0, 1e-9, 0, 0, 0};
  for (const uint64_t side : {64, 128, 256}) {
    const Compute compute = Product(side, side, side);
    product.points.push_back({WorkOf(compute, DType::kFp32),
                              Seconds(compute.flops.value() * 1e-9 * (side == 64 ? 2 : 1))});
  }
  KernelCosts copy;
  copy.kernel = Kernel::kCopy;
  copy.knots = {Bytes(1e6)};
  copy.coefficients = {1e-6, 1e-9, 0, 1e-9};
  copy.points = {{{{}, Bytes(1e3), Flops(0)}, Seconds(2e-6)},
                 {{{}, Bytes(1e7), Flops(0)}, Seconds(1.9001e-2)}};
  return {DType::kFp32, {product, copy}};
}

TEST(MeasuredCostsTest, AMeasuredShapeTakesWhatItTook) {
  const auto time = TimeOf(SampleKernels(), Product(64, 64, 64));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(time->source, CostSource::kExact);
  EXPECT_DOUBLE_EQ(time->time.value(), 2 * 2 * 64 * 64 * 64 * 1e-9);
}

// Near 64³ the fit is corrected upwards, but by less than 2; near 256³ hardly.
TEST(MeasuredCostsTest, OtherShapesTakeTheFitCorrectedByTheirNeighbours) {
  const auto ratio = [](uint64_t side) {
    const Compute compute = Product(side, side, side);
    const auto time = TimeOf(SampleKernels(), compute);
    EXPECT_EQ(time->source, CostSource::kFitted);
    return time->time.value() / (compute.flops.value() * 1e-9);
  };
  EXPECT_GT(ratio(66), 1.9);
  EXPECT_LT(ratio(66), 2.0);
  EXPECT_NEAR(ratio(250), 1.0, 0.02);
}

TEST(MeasuredCostsTest, SizesBeyondTheMeasuredAreToldApart) {
  EXPECT_EQ(TimeOf(SampleKernels(), Product(256, 256, 380))->source, CostSource::kFitted);
  EXPECT_EQ(TimeOf(SampleKernels(), Product(256, 256, 400))->source, CostSource::kOutside);
  EXPECT_EQ(TimeOf(SampleKernels(), Product(256, 256, 40))->source, CostSource::kOutside);
}

TEST(MeasuredCostsTest, ModesAndKernelsThatWereNotMeasuredHaveNoTime) {
  EXPECT_FALSE(TimeOf(SampleKernels(), Product(64, 64, 64, GemmMode::kTN)).has_value());
  EXPECT_FALSE(TimeOf(SampleKernels(), MemoryOp(Kernel::kNorm, 1e4)).has_value());
}

// 2 MB of which 1 MB is above the knot: 1 µs + 2 ms + 1 ms; far from both points the
// correction is nearly 1.
TEST(MeasuredCostsTest, BytesAboveAKnotCostMore) {
  const auto time = TimeOf(SampleKernels(), MemoryOp(Kernel::kCopy, 2e6));
  EXPECT_NEAR(time->time.value(), 3.001e-3, 3e-5);
}

// A bf16 op of 1 kB is run in fp32: 2 kB.
TEST(MeasuredCostsTest, WorkCountsInTheTypeThatItIsDoneIn) {
  const auto narrow = TimeOf(SampleKernels(), MemoryOp(Kernel::kCopy, 5e5, DType::kBf16));
  const auto wide = TimeOf(SampleKernels(), MemoryOp(Kernel::kCopy, 1e6));
  EXPECT_EQ(narrow->time, wide->time);
}

TEST(MeasuredCostsTest, ACurveIsLinearBetweenKnotsAndSteepAtASwitch) {
  const CostCurve curve{{{Bytes(0), Seconds(1)},
                         {Bytes(100), Seconds(2)},
                         {Bytes(101), Seconds(5)},
                         {Bytes(201), Seconds(6)}}};
  EXPECT_DOUBLE_EQ(curve.At(Bytes(50)).value(), 1.5);
  EXPECT_DOUBLE_EQ(curve.At(Bytes(100)).value(), 2);
  EXPECT_DOUBLE_EQ(curve.At(Bytes(101)).value(), 5);
  EXPECT_DOUBLE_EQ(curve.At(Bytes(301)).value(), 7);  // the last slope goes on
  EXPECT_TRUE(curve.Covers(Bytes(301)));
  EXPECT_FALSE(curve.Covers(Bytes(302)));
}

// All-reduce of 400 B among 4 ranks: 6 steps of 100 B; all-gather: 3.
TEST(MeasuredCostsTest, ACollectiveTakesItsStepsTimesTheCurve) {
  MeasuredCollectives measured;
  const CostCurve curve{{{Bytes(100), Seconds(1e-6)}, {Bytes(200), Seconds(2e-6)}}};
  measured.collectives = {{CollectiveKind::kAllReduce, 4, curve},
                          {CollectiveKind::kAllGather, 4, curve}};
  Collective collective;
  collective.dtype = DType::kFp32;
  collective.bytes = Bytes(400);
  EXPECT_DOUBLE_EQ(TimeOf(measured, collective, 4)->time.value(), 6e-6);
  EXPECT_EQ(TimeOf(measured, collective, 4)->source, CostSource::kFitted);
  EXPECT_EQ(TimeOf(measured, collective, 2)->source, CostSource::kOutside);
  collective.kind = CollectiveKind::kAllGather;
  EXPECT_DOUBLE_EQ(TimeOf(measured, collective, 4)->time.value(), 3e-6);
  collective.kind = CollectiveKind::kAllToAll;
  EXPECT_FALSE(TimeOf(measured, collective, 4).has_value());
}

TEST(MeasuredCostsTest, AMessageTakesWhatItsCurveSays) {
  MeasuredCollectives measured;
  EXPECT_FALSE(MessageTimeOf(measured, Bytes(150)).has_value());
  measured.message = CostCurve{{{Bytes(100), Seconds(1e-6)}, {Bytes(200), Seconds(2e-6)}}};
  EXPECT_DOUBLE_EQ(MessageTimeOf(measured, Bytes(150))->time.value(), 1.5e-6);
  EXPECT_EQ(MessageTimeOf(measured, Bytes(150))->source, CostSource::kFitted);
  EXPECT_EQ(MessageTimeOf(measured, Bytes(1000))->source, CostSource::kOutside);
}

Calibration SampleCalibration() {
  Calibration calibration;
  calibration.cluster = "local-cpu";
  calibration.host_cores = 2;
  calibration.kernels = SampleKernels();
  for (const uint32_t ranks : {2u, 4u}) {
    MeasuredCollectives measured;
    measured.ranks = ranks;
    measured.transport = "threads";
    measured.computes_in = DType::kFp32;
    measured.collectives = {{CollectiveKind::kAllReduce, ranks, {{{Bytes(64), Seconds(1e-6)}}}}};
    calibration.collectives.push_back(measured);
  }
  calibration.about = {{"machine", {{"processor", "test"}, {"cores", 2}}},
                       {"date", "2026-11-20T10:00:00Z"},
                       {"representative", false}};
  return calibration;
}

TEST(MeasuredCostsTest, ACalibrationIsReadAsItWasWritten) {
  const auto json = ToJson(SampleCalibration());
  const Calibration read =
      ReadCalibration(JsonDocument::FromText(json.dump(), "calibration.json").Root());
  using Unordered = nlohmann::json;  // what was read is sorted by key
  EXPECT_EQ(Unordered(ToJson(read)), Unordered(json));
  EXPECT_EQ(read.origin.machine, "test, 2 cores");
  EXPECT_FALSE(read.origin.is_representative);
}

TEST(MeasuredCostsTest, EveryKernelIsReadAsItWasWritten) {
  Calibration calibration = SampleCalibration();
  calibration.kernels.emplace();
  for (int i = 1; i <= static_cast<int>(Kernel::kStateNormBackward); ++i) {
    KernelCosts costs;
    costs.kernel = static_cast<Kernel>(i);
    costs.coefficients.resize(costs.kernel == Kernel::kGemm ? 5 : 3);
    KernelWork work;
    work.gemm.m = work.gemm.n = work.gemm.k = 8;
    work.bytes = Bytes(100);
    work.flops = Flops(10);
    costs.points.push_back({work, Seconds(1e-5)});
    calibration.kernels->kernels.push_back(std::move(costs));
  }
  const auto json = ToJson(calibration);
  const Calibration read =
      ReadCalibration(JsonDocument::FromText(json.dump(), "calibration.json").Root());
  EXPECT_EQ(nlohmann::json(ToJson(read)), nlohmann::json(json));
}

TEST(MeasuredCostsTest, ANewerSchemaIsRefused) {
  auto json = ToJson(SampleCalibration());
  json["schema"] = "rehearse.calibration.v2";
  try {
    ReadCalibration(JsonDocument::FromText(json.dump(), "calibration.json").Root());
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rehearse.calibration.v1"), std::string::npos);
  }
}

TEST(MeasuredCostsTest, AClusterTakesTheCollectivesOfAsManyRanks) {
  const auto cluster =
      ApplyCalibration(*ReadClusterArgument("local-cpu:ranks=4"), SampleCalibration());
  ASSERT_NE(cluster->measured_collectives(), nullptr);
  EXPECT_EQ(cluster->measured_collectives()->ranks, 4u);
  EXPECT_EQ(cluster->DeviceOf(0).host_cores, 2);
  EXPECT_EQ(ComputeTime(cluster->DeviceOf(0), Product(64, 64, 64), false),
            TimeOf(SampleKernels(), Product(64, 64, 64))->time);
}

}  // namespace measured_costs_test
}  // namespace rehearse
