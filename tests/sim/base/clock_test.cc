#include "sim/base/clock.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

TEST(ClockTest, ASecondIsATrillionPicoseconds) {
  EXPECT_EQ(ToTime(Seconds(1)).picoseconds(), 1'000'000'000'000);
  EXPECT_EQ(ToSeconds(Time(1'500'000'000'000)), Seconds(1.5));
}

TEST(ClockTest, RoundsToTheNearestPicosecond) {
  EXPECT_EQ(ToTime(Seconds(1.4e-12)), Time(1));
  EXPECT_EQ(ToTime(Seconds(1.6e-12)), Time(2));
  EXPECT_EQ(ToTime(Seconds(0)), Time(0));
}

TEST(ClockTest, RoundsHalvesAwayFromZero) {
  // n·2^-12 s is n·10^12 / 4096 = n·244140625 ps exactly; a 2^-13 s is 122070312.5 ps.
  EXPECT_EQ(ToTime(Seconds(std::ldexp(1, -12))), Time(244'140'625));
  EXPECT_EQ(ToTime(Seconds(std::ldexp(1, -13))), Time(122'070'313));
  EXPECT_EQ(ToTime(Seconds(std::ldexp(3, -13))), Time(366'210'938));  // 366210937.5
}

TEST(ClockTest, HoldsAHundredDays) {
  // 100 days = 8,640,000 s.
  EXPECT_EQ(ToTime(Seconds(8'640'000)).picoseconds(), 8'640'000'000'000'000'000);
}

TEST(ClockTest, ADurationThatNoClockCanHoldIsAFaultOfOurs) {
  EXPECT_THROW(ToTime(Seconds(-1e-12)), InternalError);
  EXPECT_THROW(ToTime(Seconds(1e7)), InternalError);  // 115 days, the range is 106
  EXPECT_THROW(ToTime(Seconds(std::numeric_limits<double>::infinity())), InternalError);
  EXPECT_THROW(ToTime(Seconds(std::numeric_limits<double>::quiet_NaN())), InternalError);
}

TEST(ClockTest, CountsExactly) {
  const Time a(7);
  const Time b(5);
  EXPECT_EQ(a + b, Time(12));
  EXPECT_EQ(a - b, Time(2));
  EXPECT_EQ(3 * a, Time(21));
  EXPECT_LT(b, a);
}

RC_GTEST_PROP(ClockTest, SecondsAndBackIsTheSameTimeForAnHour, ()) {
  // An hour is 3.6e15 ps < 2^53, so that a double tells all its picoseconds apart.
  const auto picoseconds = *rc::gen::inRange<int64_t>(0, 3'600'000'000'000'000);
  RC_ASSERT(ToTime(ToSeconds(Time(picoseconds))).picoseconds() == picoseconds);
}

}  // namespace
}  // namespace rehearse
