// What a route minimises, in this order; see topology/fabrics/router.h. Sums are exact:
// times are integers.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "sim/base/clock.h"

namespace rehearse {

struct PathCost {
  Time latency;
  uint32_t links = 0;
  uint32_t foreign_nics = 0;

  static constexpr PathCost Infinite() {
    return {Time(std::numeric_limits<int64_t>::max() / 4), 0, 0};
  }

  friend constexpr PathCost operator+(PathCost a, PathCost b) {
    return {a.latency + b.latency, a.links + b.links, a.foreign_nics + b.foreign_nics};
  }
  friend constexpr auto operator<=>(const PathCost&, const PathCost&) = default;
};

}  // namespace rehearse
