// Which nodes of a layer are replayed as one CUDA graph, so that the host launches them at once
// (Training::graphs_attention and its neighbours). Layers of a pattern have one of these parts.
// Others begin with attention, which ends with the first sum; then come an MLP, or a router and
// after that experts, which are never part of a graph: how many rows they get is known only then.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

// By node: 0 if it is launched by itself, else the number of its graph within its layer. Empty if
// the host takes no time, or nothing is replayed.
std::vector<uint32_t> GraphsOfNodes(const Network& network, const Training& training);

}  // namespace rehearse
