// What `rehearse topology CLUSTER --bound` prints: the least time that the wires allow
// (collectives/lowering/wire_bound.h) for each kind of collective, on a machine, on two and on all,
// and which cut says so.
#pragma once

#include <string>

#include "sim/report/data_table.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Throws Error for a cluster of more devices: a maximum flow over all its links takes long.
inline constexpr uint32_t kMostForBound = 4096;

// A row for each kind and group, for 1 GiB.
DataTable WireBoundTable(const Cluster& cluster);
std::string WireBoundText(const Cluster& cluster);

}  // namespace rehearse
