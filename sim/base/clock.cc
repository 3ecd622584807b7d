#include "sim/base/clock.h"

#include <cmath>

#include "sim/base/error.h"

namespace rehearse {

Time ToTime(Seconds duration) { return RoundedTime(duration.value() * kPicosecondsPerSecond); }

Time RoundedTime(double picoseconds) {
  CHECK_GE(picoseconds, 0.0);  // NaN fails as well
  constexpr double kRange = 0x1p63;
  return picoseconds < kRange ? Time(std::llround(picoseconds)) : kBeyondTime;
}

}  // namespace rehearse
