#include "sim/base/clock.h"

#include <limits>

#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace clock_test {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(ClockTest, ASumBeyondTheRangeIsBeyondAndDoesNotWrap) {
  EXPECT_EQ(Time(kMost - 5) + Time(3), Time(kMost - 2));
  EXPECT_EQ(Time(kMost - 5) + Time(6), kBeyondTime);
  EXPECT_EQ(kBeyondTime + kBeyondTime, kBeyondTime);
  Time time(kMost / 2);
  time += Time(kMost / 2 + 2);
  EXPECT_EQ(time, kBeyondTime);
}

TEST(ClockTest, AMultipleBeyondTheRangeIsBeyond) {
  EXPECT_EQ(int64_t{1000} * Time(7), Time(7000));
  EXPECT_EQ((int64_t{1} << 32) * Time(int64_t{1} << 31), kBeyondTime);  // 2^63
}

// 2^63 ps are 9,223,372.04 s, 106.75 days.
TEST(ClockTest, ADurationBeyondTheRangeIsBeyond) {
  EXPECT_EQ(ToTime(Seconds(9.2e6)), Time(int64_t{9'200'000} * 1'000'000'000'000));
  EXPECT_EQ(ToTime(Seconds(9.3e6)), kBeyondTime);
  EXPECT_EQ(ToTime(Seconds(std::numeric_limits<double>::infinity())), kBeyondTime);
  EXPECT_LT(ToTime(kBeyondSeconds * (1 - 0x1p-50)), kBeyondTime);
  EXPECT_EQ(ToTime(kBeyondSeconds), kBeyondTime);
}

TEST(ClockTest, WhatIsNoDurationIsOurFault) {
  EXPECT_THROW(ToTime(Seconds(-1)), InternalError);
  EXPECT_THROW(ToTime(Seconds(std::numeric_limits<double>::quiet_NaN())), InternalError);
}

}  // namespace clock_test
}  // namespace rehearse
