// What it costs a step to have the devices that it has: beside the best ones of a cluster that
// nobody else uses, and where others leave fragments (scenarios/readers/busy_cluster.h), beside
// what another day would leave.
#pragma once

#include <optional>
#include <string>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/result.h"

namespace rehearse {

inline constexpr uint64_t kPlacementSeeds = 8;

// Plays a step that has what others leave with each seed, unless the scenario fixes one; the
// scenario then has the devices of the lower median. Where a hash decides the routes, each draw has
// a seed of its own for it, too, which the scenario then has as well. Nothing, and no change, if
// nothing is drawn. Uses `threads` threads (0: as many as the machine has cores). Throws as
// PlayScenario() does.
std::optional<PlacementSpread> SettlePlacement(Scenario* scenario, unsigned threads,
                                               ProgressObserver& observer);

struct BestPlacement {
  Seconds step;         // the mean step of the job, alone
  std::string order;    // "block", "even", "further on"; "as placed" where none is better
  uint32_t played = 0;  // steps
};

// Whether no machine is slower than others, by edits or stragglers, and nothing happens to a link.
bool HasEqualMachines(const Scenario& scenario);
// Whether it does not matter, then, which of the machines that are alike to the fabric a job is on:
// no hash of who sends to whom decides the routes.
bool MachinesAreAlike(const Scenario& scenario);

// Plays one of the scenario's jobs alone on the cluster's first devices, and on equally many of
// each machine where that is possible; where machines are not equal, on devices further on, too.
// `own` is what a step takes alone where it is.
BestPlacement FindBestPlacement(const Scenario& scenario, size_t job, Seconds own,
                                ProgressObserver& observer = NoObserver());

}  // namespace rehearse
