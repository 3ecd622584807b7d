// The rings that NCCL goes inside a machine, where they are known (rehearse import nccl-graph) or
// tried out:
//   "rings": [[0, 1, 2, 3], [0, 3, 2, 1]]
// in a cluster. Devices are numbered as in their machine, and every machine has as many. Groups
// that are whole machines go these rings: inside one around, across machines from the first device
// to the last and on to the next machine. One that is listed twice carries twice as much. Other
// groups, and clusters without "rings", have theirs searched (collectives/algorithms/channels.h).
#pragma once

#include <memory>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

JsonShape GivenRingsShape();

// The cluster with the rings of `reader`. Throws Error where one is no ring of a machine's devices,
// or machines differ in their number.
std::unique_ptr<Cluster> ApplyRings(const Cluster& cluster, const JsonReader& reader);

}  // namespace rehearse
