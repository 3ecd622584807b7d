// The ways between devices and the memory of their hosts, for copies over PCIe, NVLink-C2C or
// xGMI: offloading shares these links with everything else that crosses them.
//
// A device's way leads to the nearest socket of its machine and its way back comes from the nearest
// one: by latency, then by number of links, then by the smallest vertex; never through another
// device or a NIC. Where copies between devices go through the host's memory
// (topology/presets/node.h), what arrives at a socket is in its memory. Memory itself is not a
// link, so sockets' own bandwidth does not count. Not thread-safe (it remembers).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

class HostWays {
 public:
  explicit HostWays(const Cluster& cluster);

  // Links by index, those nearest to where it begins first. Throws Error if the device's machine
  // has no socket that it reaches, or that reaches it.
  std::vector<uint32_t> Of(uint32_t rank, bool to_host);

 private:
  std::vector<uint32_t> LinksOfMachine(uint32_t rank);
  std::vector<uint32_t> Find(uint32_t rank, bool to_host);

  const Cluster& cluster_;
  const bool are_alike_;  // all machines, so that the way of a place in one is that in all
  // By rank, or by place in the machine and then counted from its first link; and direction.
  std::map<std::pair<uint32_t, bool>, std::vector<uint32_t>> known_;
  std::vector<std::vector<uint32_t>> links_of_node_;  // unless machines are alike
};

}  // namespace rehearse
