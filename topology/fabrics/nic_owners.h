// Which NICs are whose: see topology/fabrics/router.h.
#pragma once

#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// For each rank the NICs that it owns; none if it can reach no NIC of its machine. Of the fastest
// NICs that it reaches, as they were drawn (NCCL takes the local net of the highest bandwidth
// first: ncclTopoGetLocal of its src/graph/topo.cc), the nearest by the class of the path
// (topology/fabrics/path_class.h), then by latency, then by number of links. Equally near NICs, in
// the order of their ids, are dealt in turn to the devices of the machine that are nearest to the
// same ones, until every device and every NIC has had its turn: of four NICs, two devices own two
// each; of two NICs, four devices share each by twos. A device whose nearest NICs are all nearer to
// others, since its own is down, borrows that of the device next to it, and several such devices
// different ones as long as there are enough. A NIC without a cable out or a cable in is nobody's.
std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster);

// The same for the devices of one machine, in the order given, which must be that of their
// ranks and complete.
std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster,
                                             const std::vector<VertexId>& devices);

}  // namespace rehearse
