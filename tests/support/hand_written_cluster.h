// Random clusters as somebody might write them by hand, the same for a seed on every machine:
// latencies and bandwidths in any order (a NIC may be nearer than the next GPU, NVLink slower than
// PCIe), boxes of any size with any number of NICs and sockets, NICs and cables that are down,
// several switches.
// Half are in the compact form, the others are drawn vertex by vertex, with boxes that differ.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "topology/cluster/cluster.h"

namespace rehearse {

// As JSON. Some cannot be read: devices that nothing joins, for instance.
std::string HandWrittenClusterText(uint64_t seed);

// The first one that can be read, of a sequence of seeds that depends on this one.
struct HandWrittenCluster {
  std::string text;
  std::unique_ptr<Cluster> cluster;
};
HandWrittenCluster DrawHandWrittenCluster(uint64_t seed);

}  // namespace rehearse
