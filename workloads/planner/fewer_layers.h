// A network with fewer of its equal layers, whose step takes as long layer by layer.
//
// What counts all layers at once still does: parameters, gradients and optimizer state, the norm of
// the gradients, Adam, the sums of vectors' gradients, and the flops of the model
// (Network::left_out says how many layers there are in addition). Everything else of the step is
// there once for each layer that is left. Such a network is planned to be timed, not to be
// executed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

struct FewerLayers {
  Network network;
  Strategy strategy;  // its products are those of the matrices that are left
};

// Leaves so many layers, and leaves out the others from the third on. Nothing if there are no more
// than that, if some layer from the second on differs from the one before it (in its nodes, in
// where they take their inputs from, in its matrices and vectors, in their layouts), or if the
// strategy treats layers by their number or counts elements across them.
std::optional<FewerLayers> WithFewerLayers(const Network& network, const Strategy& strategy,
                                           uint32_t layers);

}  // namespace rehearse
