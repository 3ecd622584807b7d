// Sweeps and searches as several processes started by mpirun (or srun --mpi=pmix): each rank
// simulates points that it leases (real/transports/leases.h) and keeps them in a file of its own;
// at the end the first rank merges these files, and goes on with the result as one process would.
//
// A rank that dies ends the run, which names it. What all ranks have kept is merged at the
// beginning of the next run, so that only points in flight are simulated again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "real/transports/launcher.h"
#include "scenarios/evaluating/engine.h"
#include "tools/results_options.h"

namespace rehearse {

// A rank's part.
struct RankShare {
  Leases* leases = nullptr;
  std::vector<PointStore*> stores;
  std::function<bool()> is_stopped;
  unsigned threads = 0;  // its part of its machine's cores
};

// Returns nothing if this process is alone or has a shard of its own (--shard).
std::optional<Launch> SharingLaunch(const ResultsOptions& results);

// Calls `work` on each rank, then `finish` on the first, whose exit code it returns.
int PlayOnRanks(const Launch& launch, const ResultsOptions& results,
                const std::function<void(const RankShare&)>& work,
                const std::function<int()>& finish);

}  // namespace rehearse
