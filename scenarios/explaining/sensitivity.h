// What would help? The step simulated again on a machine of which one figure is 10 % better at a
// time.
#pragma once

#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/clock.h"
#include "sim/base/progress.h"

namespace rehearse {

inline constexpr double kBetter = 1.1;

struct Sensitivity {
  std::string what;  // "arithmetic", "network nic-switch", "latency", ...
  Seconds step;      // then
};

// One row each for the devices' arithmetic (all peaks), their memory bandwidth, kernel launches
// (overheads divided by 1.1), the rate of each kind of link that `carries` says is in use (by the
// cluster's link index), and latency (of links and steps). Links of one kind that lie at different
// distances from the devices (leaf and core of a fat tree) are kinds of their own, nearest first.
// Each is played with figures of its own over the scenario's wiring.
// Once it is stopped, `left_out` are called those that were not played.
std::vector<Sensitivity> FindSensitivities(const Scenario& scenario,
                                           const std::vector<bool>& carries,
                                           ProgressObserver& observer,
                                           std::vector<std::string>* left_out);

}  // namespace rehearse
