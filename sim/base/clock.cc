#include "sim/base/clock.h"

#include "sim/base/error.h"

namespace rehearse {

Time ToTime(Seconds duration) { return RoundedTime(duration.value() * kPicosecondsPerSecond); }

Time RoundedTime(double picoseconds) {
  CHECK_GE(picoseconds, 0.0);  // NaN fails as well
  constexpr double kRange = 0x1p63;
  if (picoseconds >= kRange) return kBeyondTime;
  // As std::llround does: halves go up. What is cut off is exact.
  const int64_t whole = static_cast<int64_t>(picoseconds);
  return Time(whole + (picoseconds - static_cast<double>(whole) >= 0.5 ? 1 : 0));
}

}  // namespace rehearse
