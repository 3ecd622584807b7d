// The simulated clock: integer picoseconds since the start of the step.
//
// Durations are computed as Seconds and rounded to the clock once, half away from zero; after that
// all arithmetic is exact, so that the same input gives the same bits on any machine and compiler.
// The range is 106 days.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/quantity.h"

namespace rehearse {

class Time {
 public:
  constexpr Time() = default;
  constexpr explicit Time(int64_t picoseconds) : picoseconds_(picoseconds) {}

  constexpr int64_t picoseconds() const { return picoseconds_; }

  constexpr Time& operator+=(Time other) {
    picoseconds_ += other.picoseconds_;
    return *this;
  }
  friend constexpr Time operator+(Time a, Time b) { return Time(a.picoseconds_ + b.picoseconds_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.picoseconds_ - b.picoseconds_); }
  friend constexpr Time operator*(int64_t n, Time a) { return Time(n * a.picoseconds_); }
  friend constexpr auto operator<=>(Time, Time) = default;

 private:
  int64_t picoseconds_ = 0;
};

inline constexpr double kPicosecondsPerSecond = 1e12;

inline constexpr Seconds ToSeconds(Time time) {
  return Seconds(static_cast<double>(time.picoseconds()) / kPicosecondsPerSecond);
}

// Rounds to the nearest picosecond. CHECKs that the duration is finite, not negative and in range.
Time ToTime(Seconds duration);

}  // namespace rehearse
