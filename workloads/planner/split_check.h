// Whether a network can be split as a strategy asks.
#pragma once

#include <vector>

#include "sim/base/error.h"
#include "workloads/networks/network.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// `rests` are the layouts of the nodes' values. Throws Error at `place`, naming tensor, axis and
// sizes, when a matrix, a value, its units (attention heads) or the samples of a micro-batch cannot
// be cut into equal parts.
void CheckSplits(const Network& network, const Strategy& strategy, const std::vector<Layout>& rests,
                 const Place& place);

}  // namespace rehearse
