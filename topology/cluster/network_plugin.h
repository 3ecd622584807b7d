// What stands between NCCL and the NICs: NCCL's own driver for InfiniBand and RoCE, or a plug-in by
// the network's maker. It tells NCCL how long its hops take, which decides what NCCL chooses; how
// long they do take is another figure. And there are protocols that it cannot carry.
//
// LL and LL128 put flags beside the data and trust that bytes arrive in the order in which they
// were written. A network that delivers out of order, or that copies through the host, must not be
// given them. Without GPUDirect NICs do not reach device memory: NCCL then takes no LL128 between
// machines, and a cluster says so in its wiring too (memory, topology/presets/node.h).
#pragma once

#include <string>
#include <vector>

#include "sim/base/quantity.h"

namespace rehearse {

struct NetworkPlugin {
  std::string name = "ib";
  Seconds told;     // per hop: what the plug-in reports to NCCL's tuning model
  Seconds latency;  // what a hop takes in addition to the links', whatever was reported
  // Longer messages are announced first, and sent when the receiver has answered: two latencies
  // more. 0: none are.
  Bytes eager;
  bool has_ll = true;
  bool has_ll128 = true;
  std::string source;

  friend bool operator==(const NetworkPlugin&, const NetworkPlugin&) = default;
};

// The table of plug-ins known by name; "ib" first. Find throws Error with "did you mean".
const std::vector<NetworkPlugin>& KnownNetworkPlugins();
const NetworkPlugin& FindNetworkPlugin(const std::string& name);

}  // namespace rehearse
