#include "topology/devices/device.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace device_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 100 TFLOP/s, 1 TB/s of which 80% are reached, 10 us per launch.
DeviceSpec RoundDevice() {
  DeviceSpec device;
  device.name = "round";
  device.matrix_peak_16 = FlopsPerSecond(100e12);
  device.vector_peak_32 = FlopsPerSecond(10e12);
  device.memory = Bytes(1e9);
  device.memory_bandwidth = BytesPerSecond(1e12);
  device.memory_efficiency = 0.8;
  device.gemm_efficiency = 0.5;
  device.attention_forward_efficiency = 0.4;
  device.attention_backward_efficiency = 0.25;
  device.launch_overhead = Seconds(10e-6);
  return device;
}

Compute GemmWork(uint64_t m, uint64_t n, uint64_t k, GemmMode mode = GemmMode::kNN) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.gemm = {m, n, k, mode, 1};
  compute.flops = FlopsOf(compute.gemm);
  compute.bytes = BytesOf(compute.gemm, compute.dtype);
  return compute;
}

TEST(ComputeTimeTest, AGemmWithoutPointsTakesTheGivenShareOfThePeak) {
  // 2·5000³ = 250e9 flops at 50% of 100e12 = 5 ms; one launch 10 us. Its bytes take 0.19 ms.
  EXPECT_DOUBLE_EQ(ComputeTime(RoundDevice(), GemmWork(5000, 5000, 5000), false).value(), 5.01e-3);
}

// Parts of one kernel take its time together, however ill they would fill the device alone.
TEST(ComputeTimeTest, APartOfAGemmTakesItsShareOfTheWhole) {
  for (const DeviceSpec& device : {RoundDevice(), FindDevice("h100"), FindDevice("a100-40g")}) {
    const Compute whole = GemmWork(2048, 1536, 1024);
    Compute part = GemmWork(2048 / 8, 1536 / 2, 1024);
    part.row_parts = 8;
    part.column_parts = 2;
    part.bytes = whole.bytes / 16;
    part.kernels = 0;  // all but the first
    for (const bool in_steps : {false, true}) {
      const auto time = [&](const Compute& compute) {
        return (in_steps ? TimeInSteps(device, compute, false)
                         : ComputeTime(device, compute, false))
            .value();
      };
      EXPECT_NEAR(16 * time(part) / time(whole), 1, 1e-12) << device.name;
    }
  }
}

TEST(ComputeTimeTest, AThinGemmIsBoundByItsBytes) {
  // A vector times a matrix: 2·10⁸ flops take 4 us; (10⁴ + 10⁸ + 10⁴)·2 bytes at 0.8e12 B/s take
  // 250.05 us. With the launch 260.05 us.
  EXPECT_DOUBLE_EQ(ComputeTime(RoundDevice(), GemmWork(1, 10000, 10000), false).value(), 260.05e-6);
}

TEST(ComputeTimeTest, GemmScaleSpeedsUpGemmsAndAttention) {
  DeviceSpec device = RoundDevice();
  device.launch_overhead = Seconds(0);
  device.gemm_scale = 1.25;
  EXPECT_DOUBLE_EQ(ComputeTime(device, GemmWork(5000, 5000, 5000), false).value(), 4e-3);
  Compute attention;
  attention.kind = ComputeKind::kAttention;
  attention.flops = Flops(40e9);
  // 40e9 / (100e12 · 0.4 · 1.25) = 0.8 ms forward; at 0.25 backward 1.28 ms.
  EXPECT_DOUBLE_EQ(ComputeTime(device, attention, false).value(), 0.8e-3);
  EXPECT_DOUBLE_EQ(ComputeTime(device, attention, true).value(), 1.28e-3);
}

TEST(ComputeTimeTest, MemoryWorkRunsAtTheReachableBandwidth) {
  Compute compute;
  compute.bytes = Bytes(80e6);
  compute.kernels = 3;
  // 80e6 / 0.8e12 = 100 us, and three launches of 10 us.
  EXPECT_DOUBLE_EQ(ComputeTime(RoundDevice(), compute, false).value(), 130e-6);
}

TEST(ComputeTimeTest, WhatASmallKernelReadsIsStillInTheCache) {
  DeviceSpec device = RoundDevice();
  device.launch_overhead = Seconds(0);
  device.cache = Bytes(100e6);
  device.cache_bandwidth = BytesPerSecond(4e12);
  const auto microseconds = [&](double bytes, uint32_t kernels) {
    Compute compute;
    compute.bytes = Bytes(bytes);
    compute.kernels = kernels;
    return ComputeTime(device, compute, false).value() * 1e6;
  };
  // 70 MB: half at 0.8 TB/s, half at 4 TB/s: 43.75 + 8.75 us. From 105 MB on, all of it at 0.8
  // TB/s.
  EXPECT_NEAR(microseconds(70e6, 1), 52.5, 1e-9);
  EXPECT_NEAR(microseconds(105e6, 1), 131.25, 1e-9);
  // Half way between, a quarter: 87.5 MB · (0.75/0.8 + 0.25/4).
  EXPECT_NEAR(microseconds(87.5e6, 1), 87.5 * (0.75 / 0.8 + 0.25 / 4), 1e-9);
  // Two kernels of 70 MB each.
  EXPECT_NEAR(microseconds(140e6, 2), 105, 1e-9);
}

TEST(ComputeTimeTest, MemoryWorkWithManyFlopsIsBoundByTheVectorPeak) {
  Compute compute;
  compute.bytes = Bytes(80e6);  // 100 us
  compute.flops = Flops(5e9);   // 5e9 / 10e12 = 500 us
  EXPECT_DOUBLE_EQ(ComputeTime(RoundDevice(), compute, false).value(), 510e-6);
}

// 0.24 GB at 0.24 of 0.8 TB/s are 1.25 ms, and three launches; a CPU's kernels are products, whose
// bytes take 0.3 ms.
TEST(ComputeTimeTest, ScansOfGpusReachAShareOfTheBandwidth) {
  DeviceSpec device = RoundDevice();
  Compute scan = GemmWork(128, 64, 256);
  scan.kernel = Kernel::kStateScan;
  scan.bytes = Bytes(0.24e9);
  scan.kernels = 3;
  EXPECT_DOUBLE_EQ(ComputeTime(device, scan, false).value(), 330e-6);
  device.compute_capability = 9;
  EXPECT_DOUBLE_EQ(ComputeTime(device, scan, false).value(), 1280e-6);
  // Products that take longer than that count: 2·128·64·256·10⁴ flops at 50 TFLOP/s.
  scan.gemm.batch = 10000;
  scan.flops = FlopsOf(scan.gemm);
  scan.bytes = Bytes(1);
  EXPECT_DOUBLE_EQ(ComputeTime(device, scan, false).value(), 838.8608e-6 + 30e-6);
}

TEST(ComputeTimeTest, StridedElementsTakeLongerThanTheirBytes) {
  DeviceSpec device = RoundDevice();
  Compute compute;
  compute.bytes = Bytes(80e6);  // 100 us
  compute.strided = 10e6;
  compute.strided_bytes = Bytes(40e6);
  EXPECT_DOUBLE_EQ(ComputeTime(device, compute, false).value(), 110e-6);
  device.strided_element = Seconds(4e-12);  // 40 us, but their bytes take 50
  EXPECT_DOUBLE_EQ(ComputeTime(device, compute, false).value(), 110e-6);
  device.strided_element = Seconds(8e-12);  // 80 us, and the other bytes 50
  EXPECT_DOUBLE_EQ(ComputeTime(device, compute, false).value(), 140e-6);
}

// 46 % of the host's nominal bandwidth, no launches, and nothing beside it slows it down.
TEST(ComputeTimeTest, TheHostsWorkIsBoundByItsMemory) {
  DeviceSpec device = RoundDevice();
  device.compute_capability = 80;
  Compute compute;
  compute.kind = ComputeKind::kHost;
  compute.bytes = Bytes(4.6e9);
  EXPECT_THAT(
      [&] { ComputeTime(device, compute, false); },
      ThrowsMessage<Error>(HasSubstr("expected \"memory_bandwidth\" of the machine's host")));
  device.host_bandwidth = BytesPerSecond(100e9);
  EXPECT_DOUBLE_EQ(ComputeTime(device, compute, false).value(), 0.1);
  Slowdown slowdown;
  slowdown.memory = 1;
  EXPECT_EQ(SlowdownOf(slowdown, compute), 0);
  // A rank on a CPU is its own host.
  DeviceSpec processor = RoundDevice();
  processor.compute_capability = 0;
  Compute own = compute;
  own.kind = ComputeKind::kMemory;
  own.kernels = 0;
  EXPECT_EQ(ComputeTime(processor, compute, false), ComputeTime(processor, own, false));
}

TEST(ComputeTimeTest, NoWorkTakesItsLaunches) {
  Compute compute;
  EXPECT_DOUBLE_EQ(ComputeTime(RoundDevice(), compute, false).value(), 10e-6);
  compute.kernels = 0;
  EXPECT_EQ(ComputeTime(RoundDevice(), compute, false), Seconds(0));
}

TEST(ComputeTimeTest, AMissingRateIsTheUsersMistake) {
  Compute compute = GemmWork(64, 64, 64);
  compute.dtype = DType::kTf32;
  try {
    ComputeTime(RoundDevice(), compute, false);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("\"round\""), HasSubstr("matrix_peak_32"), HasSubstr("tf32")));
  }
}

TEST(PeakTest, EveryTypeHasItsOwnPeak) {
  const DeviceSpec& a100 = FindDevice("a100-40g");
  EXPECT_EQ(PeakOf(a100, DType::kBf16), FlopsPerSecond(312e12));
  EXPECT_EQ(PeakOf(a100, DType::kFp16), FlopsPerSecond(312e12));
  EXPECT_EQ(PeakOf(a100, DType::kTf32), FlopsPerSecond(156e12));
  EXPECT_EQ(PeakOf(a100, DType::kFp32), FlopsPerSecond(19.5e12));
  EXPECT_EQ(PeakOf(a100, DType::kFp64), FlopsPerSecond(9.7e12));
}

TEST(GemmEfficiencyTest, AMeasuredShapeHasExactlyItsEfficiency) {
  const DeviceSpec& a100 = FindDevice("a100-40g");
  ASSERT_EQ(a100.gemm_points.size(), 183u);  // 61 layers, three modes each
  for (const GemmPoint& point : a100.gemm_points)
    EXPECT_EQ(GemmEfficiency(a100, {point.m, point.n, point.k, point.mode, 1}), point.efficiency);
}

TEST(GemmEfficiencyTest, ThePointsAreThoseOfTheSource) {
  const DeviceSpec& a100 = FindDevice("a100-40g");
  // The first layer of the source: 4096 tokens, 5120 inputs, 1536 outputs. There "m=4096, k=5120,
  // n=1536, layout=TN" 0.78767, "m=4096, k=1536, n=5120, layout=NN" 0.73751, "m=1536, k=4096,
  // n=5120, layout=NT" 0.62445, with layouts in cuBLAS's column-major order,
  // on the PCIe card.
  constexpr double kSxmOverPcie = 267.9 / 256.4;
  EXPECT_EQ(GemmEfficiency(a100, {4096, 1536, 5120, GemmMode::kNT, 1}), 0.78767 * kSxmOverPcie);
  EXPECT_EQ(GemmEfficiency(a100, {4096, 5120, 1536, GemmMode::kNN, 1}), 0.73751 * kSxmOverPcie);
  EXPECT_EQ(GemmEfficiency(a100, {1536, 5120, 4096, GemmMode::kTN, 1}), 0.62445 * kSxmOverPcie);
}

TEST(GemmEfficiencyTest, NoShapeIsMeasuredTwice) {
  std::set<std::tuple<GemmMode, uint64_t, uint64_t, uint64_t>> shapes;
  for (const GemmPoint& point : FindDevice("a100-40g").gemm_points)
    EXPECT_TRUE(shapes.emplace(point.mode, point.m, point.n, point.k).second);
}

TEST(GemmEfficiencyTest, BetweenTwoPointsHalfWayIsTheirMean) {
  DeviceSpec device = RoundDevice();
  device.gemm_points = {{GemmMode::kNN, 1024, 1024, 1024, 0.4},
                        {GemmMode::kNN, 4096, 1024, 1024, 0.8}};
  // 2048 is half way between 1024 and 4096 on a logarithmic scale.
  EXPECT_NEAR(GemmEfficiency(device, {2048, 1024, 1024, GemmMode::kNN, 1}), 0.6, 1e-9);
  // Distances ln 4 and 2·ln 4 from the points: weights 16 to 1, (16·0.4 + 0.8) / 17.
  EXPECT_NEAR(GemmEfficiency(device, {256, 1024, 1024, GemmMode::kNN, 1}), 7.2 / 17, 1e-9);
  // Another mode has no points.
  EXPECT_EQ(GemmEfficiency(device, {2048, 1024, 1024, GemmMode::kTN, 1}), 0.5);
}

TEST(GemmEfficiencyTest, ABatchCountsAsMoreRows) {
  const DeviceSpec& a100 = FindDevice("a100-40g");
  EXPECT_EQ(GemmEfficiency(a100, {1024, 1536, 5120, GemmMode::kNT, 4}),
            GemmEfficiency(a100, {4096, 1536, 5120, GemmMode::kNT, 1}));
}

TEST(GemmEfficiencyTest, EveryShapeLiesBetweenTheWorstAndTheBestPoint) {
  const DeviceSpec& a100 = FindDevice("a100-40g");
  std::mt19937_64 random(1);
  for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN}) {
    double worst = 1;
    double best = 0;
    for (const GemmPoint& point : a100.gemm_points) {
      if (point.mode != mode) continue;
      worst = std::min(worst, point.efficiency);
      best = std::max(best, point.efficiency);
    }
    for (int i = 0; i < 2000; ++i) {
      const auto size = [&] { return 1 + random() % (uint64_t{1} << (1 + random() % 20)); };
      const double efficiency = GemmEfficiency(a100, {size(), size(), size(), mode, 1});
      // A mean of numbers may leave their range through rounding.
      EXPECT_GE(efficiency, worst * (1 - 1e-12));
      EXPECT_LE(efficiency, best * (1 + 1e-12));
    }
  }
}

TEST(GemmEfficiencyTest, NeighbouringShapesHaveNearlyTheSameEfficiency) {
  // The surface is smooth: one row more changes it little, through measured points as well.
  const DeviceSpec& a100 = FindDevice("a100-40g");
  const auto efficiency = [&](uint64_t m) {
    return GemmEfficiency(a100, {m, 5120, 8192, GemmMode::kNN, 1});
  };
  for (uint64_t m = 2048; m < 8192; ++m) EXPECT_NEAR(efficiency(m), efficiency(m + 1), 5e-4) << m;
}

TEST(GemmEfficiencyTest, AnEmptyGemmHasNone) {
  EXPECT_THROW(GemmEfficiency(FindDevice("a100-40g"), {0, 1, 1, GemmMode::kNN, 1}), InternalError);
}

TEST(KnownDevicesTest, TheA100RunsABigLayerAsMeasuredTimesItsScale) {
  // 4096 x 8192 x 8192 NN: measured 0.73871 of 312 TFLOP/s on the PCIe card, 267.9/256.4 as fast
  // here. 2·4096·8192·8192 = 5.4976e11 flops / (312e12 · 0.73871 · 1.04485) = 2282.9 us, one
  // launch 5.5 us.
  EXPECT_NEAR(ComputeTime(FindDevice("a100-40g"), GemmWork(4096, 8192, 8192), false).value(),
              2288.4e-6, 0.1e-6);
}

TEST(KnownDevicesTest, AttentionCountsTheCausalHalf) {
  // SimuMax: forward 1.187, backward 1.005 of the peak with all flops counted; half is done.
  // On the PCIe card; this one is 267.9/256.4 as fast.
  const DeviceSpec& a100 = FindDevice("a100-80g");
  EXPECT_DOUBLE_EQ(a100.attention_forward_efficiency, 0.5935 * 267.9 / 256.4);
  EXPECT_DOUBLE_EQ(a100.attention_backward_efficiency, 0.5025 * 267.9 / 256.4);
}

TEST(KnownDevicesTest, StreamingReachesTheMeasuredBandwidth) {
  // 0.88 · 1555 GB/s = 1368 GB/s, between the 1360 and 1375 that gpu-stream measured.
  const DeviceSpec& a100 = FindDevice("a100-40g");
  const double reached = a100.memory_bandwidth.value() * a100.memory_efficiency;
  EXPECT_GT(reached, 1360e9);
  EXPECT_LT(reached, 1375e9);
}

TEST(KnownDevicesTest, EveryRowIsCompleteAndSourced) {
  std::string previous;
  for (const DeviceSpec& device : KnownDevices()) {
    EXPECT_LT(previous, device.name);  // sorted, none twice
    previous = device.name;
    EXPECT_FALSE(device.description.empty());
    EXPECT_GT(device.matrix_peak_16.value(), 0);
    EXPECT_GT(device.memory.value(), 0);
    EXPECT_GT(device.memory_bandwidth.value(), 0);
    std::set<std::string> figures;
    for (const auto& [figure, source] : device.sources) {
      EXPECT_FALSE(source.empty()) << figure;
      EXPECT_TRUE(figures.insert(figure).second) << figure;
    }
    for (const char* figure :
         {"matrix_peak_16", "matrix_peak_32", "vector_peak_32", "vector_peak_64", "memory",
          "memory_bandwidth", "memory_efficiency", "gemm_points", "gemm_scale", "gemm_efficiency",
          "attention_forward_efficiency", "attention_backward_efficiency", "launch_overhead"})
      EXPECT_EQ(figures.count(figure), 1u) << device.name << " has no source for " << figure;
  }
}

TEST(KnownDevicesTest, AMisspeltNameIsSuggested) {
  try {
    FindDevice("a100-40");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("no device \"a100-40\""), HasSubstr("did you mean \"a100-40g\"?")));
  }
}

}  // namespace device_test
}  // namespace rehearse
