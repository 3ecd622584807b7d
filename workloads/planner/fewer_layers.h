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

// Where a layer's nodes, matrices and vectors begin.
struct LayerBegin {
  uint32_t node = 0;
  uint32_t matrix = 0;
  uint32_t vector = 0;
};
// Of each layer, and of what comes after the last one.
using LayerBegins = std::vector<LayerBegin>;
// Nothing if some layer from the second on differs from the one before it: in its nodes, in where
// they take their inputs from, in its matrices or vectors.
std::optional<LayerBegins> FindEqualLayers(const Network& network);

// Leaves so many layers, and leaves out the others from the third on. Nothing if there are no more
// than that, if layers are not equal or lie in different layouts, or if the strategy says that they
// may not stand for each other.
std::optional<FewerLayers> WithFewerLayers(const Network& network, const Strategy& strategy,
                                           uint32_t layers);
// The same, if it is known where the network's equal layers begin.
std::optional<FewerLayers> WithFewerLayers(const Network& network, const Strategy& strategy,
                                           uint32_t layers, const LayerBegins& begins);

}  // namespace rehearse
