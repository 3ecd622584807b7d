// What drifted between two calibrations of one machine: the same products, other kernels and steps
// of collectives, timed twice.
//
// Only what both have timed is compared. Something drifted when its median time is more than 10 %
// off: calibrations hold their own products to that, too.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "topology/files/calibration.h"

namespace rehearse {

inline constexpr double kMostDrift = 0.10;

// Of one kernel, or one collective among as many ranks.
struct Drift {
  std::string what;  // "gemm NN fp32", "all-reduce of 2 among 4"
  size_t points = 0;
  // New times over old ones.
  double median = 1;
  double least = 1;
  double greatest = 1;

  bool IsLarge() const { return median > 1 + kMostDrift || median < 1 / (1 + kMostDrift); }
};

// In the order of the older one. Throws Error if nothing is in both.
std::vector<Drift> DriftBetween(const Calibration& before, const Calibration& after);

nlohmann::ordered_json ToJson(const std::vector<Drift>& drifts);
std::string ToText(const std::vector<Drift>& drifts);

}  // namespace rehearse
