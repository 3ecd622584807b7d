#include "workloads/planner/kernel_tuning.h"

#include <gtest/gtest.h>

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

}  // namespace kernel_tuning_test
}  // namespace rehearse
