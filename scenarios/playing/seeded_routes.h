// Steps whose paths over the network depend on a seed: ECMP's hash, Valiant's detours. One seed is
// one machine on one day; so such a step is simulated with several, and the median one is shown,
// with the range beside it and the time if equal paths shared all traffic (spray).
#pragma once

#include <optional>
#include <vector>

#include "scenarios/playing/rehearsal.h"
#include "sim/schedule/alike.h"

namespace rehearse {

// Plays the jobs sprayed, and with each seed unless the scenario fixes one; the scenario then has
// the seed of the lower median. Nothing, and no change, if nothing depends on a seed. Uses
// `threads` threads (0: as many as the machine has cores). Throws as PlayScenario() does.
std::optional<RouteSpread> SettleRoutes(const std::vector<Job>& jobs, Scenario* scenario,
                                        unsigned threads, ProgressObserver& observer);

// Adds what was played with that seed: its step if the scenario fixes the seed, and the cable that
// takes longest to carry its load, among those that routes choose from.
void DescribeRoutes(const Cluster& cluster, const PlayedScenario& played, RouteSpread* spread);

// A step whose routes depend on a seed is played with several, layer by layer.
Alike AlikeUnder(const Cluster& cluster, const FabricRouting& routing);

}  // namespace rehearse
