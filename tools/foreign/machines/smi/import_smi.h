// Reads a machine from the table that `nvidia-smi topo -m` prints.
//
// For each pair of GPUs and NICs the table says the farthest thing that the way between them
// crosses:
//   X    itself                        PHB   a PCIe host bridge: the processor
//   NV#  # NVLinks, or an NVSwitch     NODE  host bridges of one NUMA node
//   PIX  at most one PCIe switch       SYS   NUMA nodes (older: SOC)
//   PXB  several PCIe switches
// These must form a tree: devices nearer than PHB to the same device are nearer than PHB to each
// other. NV# hides the PCIe relation; it follows from the other devices, or else from the CPU and
// NUMA affinity.
//
// What becomes what: a NUMA node is a socket "node0/socketN", all linked pairwise; devices that are
// PIX share a switch; groups of them that are PXB to each other hang, each with its own switch, on
// a common one; PHB and NODE both go through the socket. NV# is # direct links, unless all pairs of
// a group have the same number and a GPU would need more links than it has: then they meet at an
// NVSwitch with # links each. NICs are numbered as in the table and have a port to the vertex
// "fabric".
//
// What other commands list of links becomes such a table
// (tools/foreign/machines/smi/link_listing.h).
//
// The table does not say the following, so the remarks say what is assumed: which GPUs these are,
// generation and width of PCIe, the speed of NICs, the processor.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster. `device` is what all GPUs are; for "",
// kAssumedDevice is assumed, with a remark. Throws Error with file and line for text that is not
// such a table, or contradicts itself.
ImportedCluster ImportSmiTopology(std::string_view text, const std::string& file,
                                  const std::string& device = "");

}  // namespace rehearse
