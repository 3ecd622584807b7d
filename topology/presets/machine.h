// A cluster from a description: equal machines and the fabric between them. Every preset and the
// compact form of cluster files end here. The cluster remembers its structure
// (topology/fabrics/structure.h), which makes building and routing linear in its size.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/fabrics/fabric.h"
#include "topology/presets/node.h"

namespace rehearse {

struct MachineSpec {
  std::string name;
  NodeSpec node;
  uint32_t nodes = 1;
  std::optional<FabricSpec> fabric;  // none: one machine alone
  std::vector<std::string> notes;
  std::string network_plugin = "ib";  // topology/cluster/network_plugin.h
};

// Draws the fabric, then machine after machine, each with its cables, and finishes the cluster.
// Throws Error when several machines have no fabric or no ports, when devices have no path to each
// other, when the fabric is too small, or when there are too many links for 32 bits.
std::unique_ptr<Cluster> BuildMachine(const MachineSpec& spec, const DeviceSpec& device);

}  // namespace rehearse
