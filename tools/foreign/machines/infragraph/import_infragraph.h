// Makes a cluster of an infrastructure of InfraGraph
// (tools/foreign/machines/infragraph/infragraph_file.h), expanded as
// tools/foreign/machines/infragraph/infragraph_expand.h says.
//
// xpus are devices, ranked by instance and index; cpus are sockets, nics NICs; switches and custom
// components are NVSwitches or PCIe switches, as they are called or joined. A port that leads to
// one component of its machine is a part of that. An instance without an xpu is one switch. A drawn
// graph has one way between two devices, so that NVSwitches of one machine that join the same
// others are drawn as one, with the sum of their bandwidths, and so are equal switches side by side
// (tools/foreign/machines/switch_blocks.h).
//
// Bandwidths hold for each direction. What the file leaves open is filled in
// (tools/foreign/machines/infragraph/infragraph_rates.h) and said in the remarks. What our own
// export (tools/foreign/machines/infragraph/infragraph_export.h) left in descriptions is taken as
// it stands.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster if it has no name itself. `device` is what all
// xpus are, if it is not "". Throws Error with file, line and pointer.
ImportedCluster ImportInfraGraph(std::string_view text, const std::string& file,
                                 const std::string& device);

}  // namespace rehearse
