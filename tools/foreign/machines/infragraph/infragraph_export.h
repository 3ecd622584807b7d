// Writes any Cluster as an infrastructure of InfraGraph, Keysight's schema (OpenAPI 2.4.0): JSON.
//
// Equal machines are one device, with a component for gpu0, gpu1, ... each; those that are numbered
// through are one instance. A switch of the fabric is a device of one component. Where ranks go to
// and fro between machines, or parts of a cluster are in no machine, all of it is one device.
//
// A link's physical figures are the nominal ones. What InfraGraph has no field for stands in
// descriptions (tools/foreign/machines/infragraph/infragraph_words.h), which our own import reads
// back: kinds, efficiencies, links of one direction, overheads, names of devices. Names are of
// letters, digits, '-' and '_', others become '-'.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

struct InfraGraphExport {
  std::string text;
  std::vector<std::string> remarks;  // what it cannot carry
};

// Throws Error for a cluster of more than 400,000 parts and links.
InfraGraphExport ClusterToInfraGraph(const Cluster& cluster);

}  // namespace rehearse
