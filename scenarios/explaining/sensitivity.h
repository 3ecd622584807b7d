// What would help? The step is simulated again with one figure of the machine at a time 10 %
// better.
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
  Seconds step;      // with that
};

// One row each for the devices' arithmetic (all peaks), their memory bandwidth, kernel launches
// (overheads divided by 1.1), the rate of each kind of link that `carries` says is in use (by the
// cluster's link index), and latency (of links and steps). Links of one kind at different distances
// from the devices (leaf and core of a fat tree) count as separate kinds, nearest first. Each is
// simulated with its own figures over the scenario's wiring. If it is stopped, `left_out` gets the
// names of those that were not simulated.
std::vector<Sensitivity> FindSensitivities(const Scenario& scenario,
                                           const std::vector<bool>& carries,
                                           ProgressObserver& observer,
                                           std::vector<std::string>* left_out);

}  // namespace rehearse
