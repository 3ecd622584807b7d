// Machines and clusters from the dumps of other tools, as `rehearse import` and `rehearse topology
// --import-*` read them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/read_options.h"
#include "tools/command.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// `kind` is "nccl", "smi", "lstopo", "infragraph" or "astra-sim" (CHECKed). `device` is what the
// devices are; "" leaves it to the file. Throws Error for a file that cannot be read or is
// something else.
ImportedCluster ImportMachine(const std::string& kind, const std::string& file,
                              const std::string& device);

// `kind` is "slurm" or "ibnetdiscover" (CHECKed). `node` is the cluster preset whose node every
// node is; "" for the usual one. `hosts` are patterns of the hosts that are taken; "" for all that
// have GPUs.
ImportedCluster ImportFabric(const std::string& kind, const std::string& file,
                             const std::string& node, const std::string& hosts = "");

// What --cluster names (topology/files/cluster_file.h), or the file of a machine or fabric that
// another program wrote, told by its content; what that leaves open is said on standard error.
std::unique_ptr<Cluster> ReadClusterOrDump(const std::string& text, const ReadOptions& options);

// What --device takes: devices that are known by name; an import knows more.
Taken TakenDevice();

// The cluster as a file that every command reads (ClusterToText()). Throws Error where it could not
// be read again.
std::string ClusterFileText(const Cluster& cluster, const std::string& routed_as = "");

}  // namespace rehearse
