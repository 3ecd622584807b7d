// Steps whose ways over the network a seed decides: ECMP's hash, Valiant's detours. One seed is one
// machine on one day; so such a step is played with several, and what is shown is the median's,
// with the range beside it and what the step would take if equal ways shared everything (spray).
#pragma once

#include <optional>
#include <vector>

#include "scenarios/playing/rehearsal.h"

namespace rehearse {

// Plays the jobs sprayed, and with each seed unless the scenario fixes one; the scenario then has
// the seed of the lower median. Nothing, and no change, where no seed decides. On so many
// threads, 0: as many as the machine has cores. Throws as PlayScenario() does.
std::optional<RouteSpread> SettleRoutes(const std::vector<Job>& jobs, Scenario* scenario,
                                        unsigned threads, ProgressObserver& observer);

// What the play with that seed adds: its step where the scenario fixes the seed, and the cable that
// has the longest to carry, of those that routes choose among.
void DescribeRoutes(const Cluster& cluster, const PlayedScenario& played, RouteSpread* spread);

}  // namespace rehearse
