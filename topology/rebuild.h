// A finished cluster taken apart, to build another from the same vertices with some of its figures changed.
#pragma once

#include <memory>
#include <vector>

#include "topology/cluster.h"

namespace rehearse {

struct ClusterParts {
  std::vector<DeviceSpec> specs;
  std::vector<uint32_t> spec_of_rank;
  std::vector<ClusterLink> links;  // in the cluster's order
  std::vector<bool> is_down;       // links that are left out
  Seconds step_overhead;
  Seconds collective_overhead;
};

ClusterParts PartsOf(const Cluster& cluster);

// Not finished yet. `parts` are this cluster's, changed; the vertices, ranks and notes stay.
std::unique_ptr<Cluster> Rebuild(const Cluster& cluster, const ClusterParts& parts);

}  // namespace rehearse
