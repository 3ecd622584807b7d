// The simulated clock: integer picoseconds since the start of the step.
//
// Durations are computed as Seconds and rounded to the clock once, half away from zero; after that
// all arithmetic is exact, so that the same input gives the same bits on any machine and compiler.
//
// The range is 106 days. Anything later is kBeyondTime, and so is any sum with it: a time never
// wraps, and whoever waits for one beyond the range (the engine does) says so.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "sim/base/quantity.h"

namespace rehearse {

class Time {
 public:
  constexpr Time() = default;
  constexpr explicit Time(int64_t picoseconds) : picoseconds_(picoseconds) {}

  constexpr int64_t picoseconds() const { return picoseconds_; }

  constexpr Time& operator+=(Time other) { return *this = *this + other; }
  friend constexpr Time operator+(Time a, Time b) {
    int64_t sum = 0;
    return Time(__builtin_add_overflow(a.picoseconds_, b.picoseconds_, &sum) ? kBeyond : sum);
  }
  // For times that are not negative, so that nothing can overflow.
  friend constexpr Time operator-(Time a, Time b) { return Time(a.picoseconds_ - b.picoseconds_); }
  // n is not negative.
  friend constexpr Time operator*(int64_t n, Time a) {
    int64_t product = 0;
    return Time(__builtin_mul_overflow(n, a.picoseconds_, &product) ? kBeyond : product);
  }
  friend constexpr auto operator<=>(Time, Time) = default;

  // One less than the largest number, which others may use for "never".
  static constexpr int64_t kBeyond = std::numeric_limits<int64_t>::max() - 1;

 private:
  int64_t picoseconds_ = 0;
};

inline constexpr Time kBeyondTime = Time(Time::kBeyond);

inline constexpr double kPicosecondsPerSecond = 1e12;
// The shortest duration beyond the range, in seconds, as exactly as a double can say it.
inline constexpr Seconds kBeyondSeconds = Seconds(0x1p63 / kPicosecondsPerSecond);
// The same in words.
inline constexpr const char* kClockRange = "106 days";

inline constexpr Seconds ToSeconds(Time time) {
  return Seconds(static_cast<double>(time.picoseconds()) / kPicosecondsPerSecond);
}

// Rounds to the nearest picosecond; anything beyond the range (infinity too) is kBeyondTime. CHECKs
// that the duration is a number and not negative.
Time ToTime(Seconds duration);
// The same for a number of picoseconds.
Time RoundedTime(double picoseconds);

}  // namespace rehearse
