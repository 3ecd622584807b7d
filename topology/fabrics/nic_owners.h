// Which NIC is whose: see topology/fabrics/router.h.
#pragma once

#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// For each rank the NIC that it owns, or kNoVertex when no NIC of its
// machine can be reached from it. The nearest by latency, then by number of links; equally near
// NICs, in the order of their ids, go in turn to the devices of the machine that are nearest to
// the same ones.
std::vector<VertexId> NicOwners(const Cluster& cluster);

// The same for the devices of one machine, in the order given, which must be that of their
// ranks and complete.
std::vector<VertexId> NicOwners(const Cluster& cluster, const std::vector<VertexId>& devices);

}  // namespace rehearse
