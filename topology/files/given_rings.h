// The rings that NCCL uses inside a machine, if they are known (rehearse import nccl-graph) or
// being tried out:
//   "rings": [[0, 1, 2, 3], [0, 3, 2, 1]]
// in a cluster. Devices are numbered within their machine, and every machine has equally many.
// Groups that are whole machines use these rings: inside one machine all around, across machines
// from the first device to the last and on to the next machine. A ring that is listed twice carries
// twice as much. For other groups, and clusters without "rings", rings are searched for
// (collectives/algorithms/channels.h).
#pragma once

#include <memory>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

JsonShape GivenRingsShape();

// The cluster with the rings of `reader`. Throws Error if one is not a ring of a machine's devices,
// or if machines differ in size.
std::unique_ptr<Cluster> ApplyRings(const Cluster& cluster, const JsonReader& reader);

}  // namespace rehearse
