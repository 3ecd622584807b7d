// A cluster as a picture: topology/view/cluster_layout.h drawn as SVG, links in their kind's colour
// and the thicker the faster, with a legend. Self-contained; the same cluster gives the same bytes.
#pragma once

#include <string>

#include "topology/cluster/cluster.h"

namespace rehearse {

std::string ClusterSvg(const Cluster& cluster);

}  // namespace rehearse
