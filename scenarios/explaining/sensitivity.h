// What would help? The step is simulated again with one figure of the machine at a time 10 %
// better.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/clock.h"
#include "sim/base/progress.h"
#include "sim/report/result.h"

namespace rehearse {

inline constexpr double kBetter = 1.1;

// What a library chooses otherwise on the better machine: by what it expects of its links, and not
// by what they take, so that the step can be longer than with what it chose before.
struct NewChoice {
  ChosenCollective before;
  ChosenCollective after;
};

struct Sensitivity {
  std::string what;             // "arithmetic", "network nic-switch", "latency", ...
  Seconds step;                 // with that
  std::vector<NewChoice> anew;  // in the order of axes, kinds and sizes
  std::optional<Seconds> kept;  // with what was chosen before, where something is chosen anew
};

// Where algorithm or protocol differ; numbers of channels follow the links anyway. Collectives of
// one axis, kind and size that are carried out in several ways are left out.
std::vector<NewChoice> ChosenAnew(const std::vector<ChosenCollective>& before,
                                  const std::vector<ChosenCollective>& after);

// One row each for the devices' arithmetic (all peaks), their memory bandwidth, kernel launches
// (overheads divided by 1.1), the rate of each kind of link that `carries` says is in use (by the
// cluster's link index), and latency (of links and steps). Links of one kind at different distances
// from the devices (leaf and core of a fat tree) count as separate kinds, nearest first. Each is
// simulated with its own figures over the scenario's wiring, and once more with what was `chosen`
// on it as it is, if libraries choose otherwise. If it is stopped, `left_out` gets the names of
// those that were not simulated.
std::vector<Sensitivity> FindSensitivities(const Scenario& scenario,
                                           const std::vector<bool>& carries,
                                           const std::vector<ChosenCollective>& chosen,
                                           ProgressObserver& observer,
                                           std::vector<std::string>* left_out);

}  // namespace rehearse
