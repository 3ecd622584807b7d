// What the limit of a board costs products and attention in the steps of a training.
#include "topology/devices/board_power.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace board_power_test {

Compute Product(uint64_t size) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.kernel = Kernel::kGemm;
  compute.gemm = {size, size, size, GemmMode::kNT, 1};
  compute.flops = FlopsOf(compute.gemm);
  compute.bytes = BytesOf(compute.gemm, DType::kBf16);
  return compute;
}

double Stretch(const DeviceSpec& device, const Compute& compute) {
  return TimeInSteps(device, compute, false) / ComputeTime(device, compute, false);
}

TEST(BoardPowerTest, LargeProductsOfAnH100TakeALittleLongerInSteps) {
  EXPECT_NEAR(Stretch(FindDevice("h100"), Product(16384)), 1.06, 0.03);
  EXPECT_EQ(Stretch(FindDevice("a100-80g"), Product(16384)), 1);
  EXPECT_LT(Stretch(FindDevice("h100"), Product(1024)), 1.001);
}

TEST(BoardPowerTest, LessPowerIsSlower) {
  DeviceSpec device = FindDevice("h100");
  double last = 0;
  for (const double watts : {300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 1000.0}) {
    device.power = watts;
    const double stretch = Stretch(device, Product(8192));
    EXPECT_GE(stretch, 1) << watts;
    if (last > 0) {
      EXPECT_LE(stretch, last) << watts;
    }
    last = stretch;
  }
  EXPECT_EQ(last, 1);
  device.power = 0;  // nothing limits it
  EXPECT_EQ(Stretch(device, Product(8192)), 1);
}

TEST(BoardPowerTest, AttentionRunsAtTheClockThatProductsLeave) {
  DeviceSpec device = FindDevice("h100");
  device.power = 500;
  EXPECT_NEAR(StretchOfAttention(device), 1.46, 0.03);
  EXPECT_EQ(StretchOfAttention(FindDevice("a100-80g")), 1);
}

TEST(BoardPowerTest, EightBitsTakeLessThanSixteen) {
  for (const char* name : {"h100", "b200"}) {
    const DeviceSpec& device = FindDevice(name);
    const Flops flops(1e13);
    EXPECT_LT(StretchOfProduct(device, DType::kFp8, flops, Seconds(0.01)),
              StretchOfProduct(device, DType::kBf16, flops, Seconds(0.01)) + 1e-9)
        << name;
  }
}

}  // namespace board_power_test
}  // namespace rehearse
