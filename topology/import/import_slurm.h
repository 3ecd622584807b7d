// Reads a cluster from Slurm's topology.conf, as its plug-in topology/tree takes it.
//
//   SwitchName=leaf0 Nodes=node[001-016,020] LinkSpeed=400     # a comment
//   SwitchName=spine Switches=leaf[0-3]
//
// A line that ends with a backslash goes on in the next. Keys are read in any case, values with
// quotes or without, lists by topology/import/hostlist.h. A switch may have both nodes and
// switches, and several switches may name the same one: it is cabled to all of them. Switches may
// be named before they are described.
//
// The file says who is near to whom, and little more. Taken are: every port of a node (those of a
// preset's NICs, topology/import/fabric_plan.h) cabled to its switch; as many cables upwards from a
// switch as ports lead to it from below, shared out among the switches above it, so that nothing is
// oversubscribed. LinkSpeed has no unit, and Slurm itself does not use it: a NIC has the preset's
// speed. All this is said in the remarks.
//
// Refused: topology/block (BlockName), which knows blocks and no switches; a node or a switch that
// is there twice; switches that nobody describes, that have nothing below them, or are below
// themselves; switches that no other joins, since between their nodes there would be no way.
#pragma once

#include <string>
#include <string_view>

#include "topology/import/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster. `node` is the cluster preset whose node every
// node is; "" for one that is assumed, and said. Throws Error with file and line.
ImportedCluster ImportSlurm(std::string_view text, const std::string& file,
                            const std::string& node = "");

}  // namespace rehearse
