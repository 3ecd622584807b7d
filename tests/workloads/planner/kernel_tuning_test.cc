#include "workloads/planner/kernel_tuning.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "topology/devices/device.h"
#include "topology/devices/device_points.h"

namespace rehearse {
namespace kernel_tuning_test {

TEST(KernelTuningTest, EveryProductTakesTheFastestModeOfItsShape) {
  // Two shapes with a point for each mode: the efficiencies say which mode wins.
  DeviceSpec device;
  device.name = "test";
  device.matrix_peak_16 = FlopsPerSecond(1e12);
  device.memory_bandwidth = BytesPerSecond(1e15);
  const auto add_points = [&](uint64_t size, double nn, double nt, double tn) {
    device.gemm_points.push_back({GemmMode::kNN, size, size, size, nn});
    device.gemm_points.push_back({GemmMode::kNT, size, size, size, nt});
    device.gemm_points.push_back({GemmMode::kTN, size, size, size, tn});
  };
  add_points(1024, 0.5, 0.6, 0.4);
  add_points(2048, 0.8, 0.7, 0.8);

  Schedule schedule;
  schedule.roles.resize(1);
  const auto add = [&](uint64_t size, GemmMode mode) {
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.gemm = {.m = size, .n = size, .k = size, .mode = mode};
    compute.flops = FlopsOf(compute.gemm);
    Op op;
    op.work = compute;
    schedule.roles[0].ops.push_back(op);
  };
  add(1024, GemmMode::kTN);
  add(1024, GemmMode::kNT);
  add(2048, GemmMode::kNT);
  add(2048, GemmMode::kTN);
  TuneKernels(device, &schedule);
  const auto mode = [&](size_t op) {
    const Compute& compute = std::get<Compute>(schedule.roles[0].ops[op].work);
    return compute.tuned.value_or(compute.gemm.mode);
  };
  EXPECT_EQ(mode(0), GemmMode::kNT);
  EXPECT_EQ(mode(1), GemmMode::kNT);
  EXPECT_EQ(mode(2), GemmMode::kNN);
  EXPECT_EQ(mode(3), GemmMode::kTN);  // as fast as NN: stays
  // Operands lie as they did.
  EXPECT_EQ(std::get<Compute>(schedule.roles[0].ops[0].work).gemm.mode, GemmMode::kTN);
  EXPECT_EQ(std::get<Compute>(schedule.roles[0].ops[2].work).gemm.mode, GemmMode::kNT);
}

// A die of MI250X has no points of its own; a user's, by mode, let it do what AxoNN's runs on
// Frontier did: a product that is slow in TN takes NN.
TEST(KernelTuningTest, AUsersPointsByModeDecideOnADeviceThatIsARoofline) {
  DeviceSpec device = FindDevice("mi250x-gcd");
  const Gemm gemm = {.m = 4096, .n = 4096, .k = 4096, .mode = GemmMode::kTN};
  const auto tuned = [&] {
    Schedule schedule;
    schedule.roles.resize(1);
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.dtype = DType::kBf16;
    compute.gemm = gemm;
    compute.flops = FlopsOf(gemm);
    Op op;
    op.work = compute;
    schedule.roles[0].ops.push_back(op);
    TuneKernels(device, &schedule);
    return std::get<Compute>(schedule.roles[0].ops[0].work).tuned;
  };
  EXPECT_FALSE(tuned().has_value());  // a roofline knows no modes

  auto points = std::make_shared<DevicePoints>();
  PointKey key;
  key.m = key.n = key.k = 4096;
  for (const auto& [mode, seconds] :
       {std::pair(GemmMode::kNN, 1.3e-3), std::pair(GemmMode::kNT, 2e-3),
        std::pair(GemmMode::kTN, 12e-3)}) {
    key.mode = mode;
    points->times[key] = Seconds(seconds);
  }
  device.points = points;
  EXPECT_EQ(tuned(), GemmMode::kNN);
}

}  // namespace kernel_tuning_test
}  // namespace rehearse
