// A cluster in Graphviz's language, one edge per link, with kind, bandwidth and latency as
// attributes.
#pragma once

#include <string>

#include "topology/cluster/cluster.h"

namespace rehearse {

std::string ClusterDot(const Cluster& cluster);

}  // namespace rehearse
