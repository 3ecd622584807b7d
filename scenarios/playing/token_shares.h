// Tokens that a collective by deepep sends only once to each machine and rank. How many of its
// bytes are left then depends on which ranks share a machine, so it is known only when a planned
// step has its places on a cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"
#include "workloads/networks/network.h"

namespace rehearse {

// Sets rank_share and machine_share of all-to-alls between experts that are pinned to deepep
// (collectives/algorithms/token_spread.h), for uniform routing. `placement` is the device of each
// rank. Throws Error if the network's experts are not spread evenly over machines.
void ShareTokens(const Network& network, const Cluster& cluster,
                 const std::vector<uint32_t>& placement, Schedule* schedule);

}  // namespace rehearse
