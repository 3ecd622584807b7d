// Machines and clusters from others' dumps, as `rehearse import` and `rehearse topology --import-*`
// read them.
#pragma once

#include <string>
#include <vector>

#include "tools/command.h"
#include "topology/import/imported_cluster.h"

namespace rehearse {

// "nccl", "smi" or "lstopo", CHECKed. `device` is what its devices are; "" where the file is to
// tell. Throws Error for a file that cannot be read, or is something else.
ImportedCluster ImportMachine(const std::string& kind, const std::string& file,
                              const std::string& device);

// "slurm" or "ibnetdiscover", CHECKed. `node` is the cluster preset whose node every node is; ""
// for the usual one.
ImportedCluster ImportFabric(const std::string& kind, const std::string& file,
                             const std::string& node);

// Of --device: devices that are known by name; an import knows more.
Taken TakenDevice();

// The cluster as a file that every command takes. Throws Error where it could not be read again.
std::string ClusterFileText(const Cluster& cluster, const std::string& preset = "");

}  // namespace rehearse
