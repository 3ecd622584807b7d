// A cluster in Graphviz' language, one edge a link, with kind, bandwidth and latency as attributes.
#pragma once

#include <string>

#include "topology/cluster/cluster.h"

namespace rehearse {

std::string ClusterDot(const Cluster& cluster);

}  // namespace rehearse
