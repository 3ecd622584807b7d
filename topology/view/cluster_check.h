// What looks wrong in a machine that somebody wrote by hand: each finding is right as a file, and
// may be meant, but is more often a mistake.
//
//   NVLinks    of most pairs of a machine's devices the route keeps to them, of one it leaves them;
//              a device is not on the plane of NVSwitches that others are on
//   NICs       a cable that carries more than its PCIe passes, or a small part of it; a NIC without
//              a cable, one that no device uses, a device that reaches none
//   fabric     switches whose machines send more than their cables to other switches pass; an
//              oversubscription of switches that have no others; in a drawn graph, leaves between
//              which several switches lead on equally, of which routes take one
//   devices    NVLinks as fast as those of another device
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct ClusterFinding {
  Place place;  // where the user said so, as far as it is known
  std::string message;
};

// Says that an oversubscription was asked for, but the leaves are the only switches of their trees;
// "" if it is not so.
std::string IdleOversubscription(const Cluster& cluster);

// `said` is the object that the cluster was read from; null if there is none.
std::vector<ClusterFinding> CheckCluster(const Cluster& cluster, const JsonReader* said);

}  // namespace rehearse
