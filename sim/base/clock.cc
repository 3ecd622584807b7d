#include "sim/base/clock.h"

#include <cmath>

#include "sim/base/error.h"

namespace rehearse {

Time ToTime(Seconds duration) {
  const double picoseconds = duration.value() * kPicosecondsPerSecond;
  // The largest power of two below the range of int64_t; NaN and infinity fail as well.
  constexpr double kRange = 9223372036854775808.0;
  CHECK_GE(picoseconds, 0.0);
  CHECK_LT(picoseconds, kRange);
  return Time(std::llround(picoseconds));
}

}  // namespace rehearse
