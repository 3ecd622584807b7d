// A step while it is being planned: what the rules of the nodes read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/parameters.h"
#include "workloads/planner/plan_builder.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// What the forward pass of a node leaves for its consumers and for its backward pass.
struct NodeState {
  Tensor value;
  Tensor operand;               // of a product: X as it was multiplied
  std::vector<BufferId> saved;  // masks, statistics of norms, ...
};

struct Plan {
  const Network& network;
  const Strategy& strategy;
  const Training& training;
  PlanBuilder& builder;
  Parameters& parameters;
  std::vector<NodeState> states = {};                 // by node, of the current chunk
  std::vector<std::optional<Tensor>> gradients = {};  // by node: of its value, as far as known
  uint32_t prefetch_end = 0;                          // matrices that may be gathered ahead

  const NetworkNode& Node(uint32_t node) const { return network.nodes[node]; }
  const Tensor& Input(uint32_t node, size_t i = 0) const {
    return states[network.nodes[node].inputs[i]].value;
  }
  double element() const { return builder.element(); }
  // A tensor for the value of a node that lies like `like`.
  Tensor MakeValue(uint32_t node, const Tensor& like) {
    const NetworkNode& shape = network.nodes[node];
    return builder.MakeTensor(shape.name, shape.rows, shape.columns, like.layout);
  }
  // A tensor for the gradient of a node's value, named "d NAME".
  Tensor MakeGradient(uint32_t node, const Layout& layout) {
    const NetworkNode& shape = network.nodes[node];
    return builder.MakeTensor("d " + shape.name, shape.rows, shape.columns, layout);
  }
  // Adds to the gradient of an input of `node`, in the layout in which its value rests.
  void PassBack(uint32_t node, Tensor gradient, size_t i = 0);
};

}  // namespace rehearse
