// Reads a cluster from Slurm's topology.conf, as its plug-in topology/tree takes it.
//
//   SwitchName=leaf0 Nodes=node[001-016,020] LinkSpeed=400     # a comment
//   SwitchName=spine Switches=leaf[0-3]
//
// A line that ends with a backslash continues on the next. Keys may be in upper or lower case,
// values with or without quotes; lists are read by tools/foreign/machines/slurm/hostlist.h. A
// switch may have both nodes and switches, and several switches may name the same one: it is cabled
// to all of them. Switches may be named before they are described.
//
// The file says who is near whom, and little more. We assume that every port of a node (those of a
// preset's NICs, tools/foreign/machines/fabric_plan.h) is cabled to its switch, and that a switch
// has as many cables upwards as ports lead to it from below, shared out among the switches above
// it, so that nothing is oversubscribed. LinkSpeed has no unit, and Slurm itself does not use it: a
// NIC has the preset's speed. The remarks say all this.
//
// Blocks of topology/block are the NVLink domains of racks, which Slurm places jobs in: each is
// drawn as a switch that its nodes are cabled to, and below one switch for each of the larger
// BlockSizes. Where the preset's node is a whole rack (gb200-nvl72), each block is one node.
// topology.yaml has either, and perhaps several; the default one is taken, or else the first.
//
// Refused: a node or a switch
// that appears twice; switches that are not described, have nothing below them, or are below
// themselves; switches that no other joins, since their nodes could not reach each other.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/host_filter.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster. `node` is the cluster preset whose node every
// node is; "" for one that is assumed, with a remark. Nodes that `hosts` does not take are left
// out. Throws Error with file and line.
ImportedCluster ImportSlurm(std::string_view text, const std::string& file,
                            const std::string& node = "", const HostFilter& hosts = {});

}  // namespace rehearse
