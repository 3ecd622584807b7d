// Half-precision numbers as GPUs keep them.
#include "real/kernels/storage.h"

#include <cmath>

#include <gtest/gtest.h>

namespace rehearse {
namespace storage_test {

TEST(StorageTest, EveryHalfPrecisionNumberIsItself) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!std::isnan(FromFp16(half))) {
      EXPECT_EQ(ToFp16(FromFp16(half)), half);
    }
    if (!std::isnan(FromBf16(half))) {
      EXPECT_EQ(ToBf16(FromBf16(half)), half);
    }
  }
}

TEST(StorageTest, RoundsToTheNearestAndTiesToEven) {
  // Steps of fp16 are 2^-10 at 1, and 2^-24 below 2^-14.
  EXPECT_EQ(FromFp16(ToFp16(1 + 0.4f / 1024)), 1);
  EXPECT_EQ(FromFp16(ToFp16(1 + 0.5f / 1024)), 1);
  EXPECT_EQ(FromFp16(ToFp16(1 + 1.5f / 1024)), 1 + 2.0f / 1024);
  EXPECT_EQ(FromFp16(ToFp16(std::ldexp(0.6f, -24))), std::ldexp(1.0f, -24));
  EXPECT_EQ(FromFp16(ToFp16(std::ldexp(0.4f, -24))), 0);
  EXPECT_EQ(FromFp16(ToFp16(65519)), 65504);
  EXPECT_TRUE(std::isinf(FromFp16(ToFp16(65520))));
  // Those of bf16 are 2^-7 at 1.
  EXPECT_EQ(FromBf16(ToBf16(1 + 0.5f / 128)), 1);
  EXPECT_EQ(FromBf16(ToBf16(1 + 1.5f / 128)), 1 + 2.0f / 128);
}

TEST(StorageTest, ZeroKeepsItsSignAndNoNumberStaysNone) {
  EXPECT_EQ(ToFp16(0.0f), 0x0000);
  EXPECT_EQ(ToFp16(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(FromFp16(ToFp16(NAN))));
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(NAN))));
}

}  // namespace storage_test
}  // namespace rehearse
