// The greatest rate at which some devices can send to others: a maximum flow, found by
// Boost's push-relabel.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// Whether the flow may pass through devices that are neither sources nor sinks.
enum class OtherDevices : uint8_t { kBlock, kPass };

// From all sources together to all sinks together, over the links with these indices, at their
// capacities. Exact to 1 B/s per link, since Boost counts whole bytes. 0 when there is no path.
// CHECKs that no vertex is both.
BytesPerSecond MaxFlow(const Cluster& cluster, const std::vector<uint32_t>& links,
                       const std::vector<VertexId>& sources, const std::vector<VertexId>& sinks,
                       OtherDevices others = OtherDevices::kBlock);

}  // namespace rehearse
