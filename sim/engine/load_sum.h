// A sum of loads that can be taken away again without leaving a trace.
//
// Loads are shares of a link's capacity in fixed point (2^-60), so that the sum does not depend on
// the order of calls and is exactly zero when all that was added has been removed. A single share
// counts for at most 4; each is cut off at 2^-60. Plain value.
#pragma once

#include <cstdint>

namespace rehearse {

class LoadSum {
 public:
  void Add(double share) { sum_ += Fixed(share); }
  void Remove(double share) { sum_ -= Fixed(share); }

  double share() const { return static_cast<double>(sum_) * 0x1p-60; }

 private:
  __extension__ using Wide = __int128;

  static int64_t Fixed(double share) {
    return share < 4 ? static_cast<int64_t>(share * 0x1p60) : int64_t{1} << 62;
  }

  Wide sum_ = 0;
};

}  // namespace rehearse
