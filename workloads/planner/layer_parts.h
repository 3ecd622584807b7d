// Which part of a pass (workloads/planner/pair_order.h) each node of a layer belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/planner/pair_order.h"
#include "workloads/planner/stages.h"

namespace rehearse {

class LayerParts {
 public:
  LayerParts(const Network& network, const Training& training, const Unit& unit);

  PassPart Forward(uint32_t node) const;
  PassPart Backward(uint32_t node) const;
  // In front of which part of the way back the node is computed again if selective recomputation
  // dropped its value: that of the last node that needs it, directly or to compute again.
  PassPart Again(uint32_t node) const { return again_[node - begin_]; }

 private:
  uint32_t begin_ = 0;
  bool has_experts_ = false;
  // Of the nodes kDispatch, kArrive, kReturn, kCombine. Without experts, where the MLP begins (or
  // the unit ends).
  uint32_t dispatch_ = 0;
  uint32_t arrive_ = 0;
  uint32_t return_ = 0;
  uint32_t combine_ = 0;
  uint32_t mlp_ = 0;
  std::vector<PassPart> again_;  // by node
};

}  // namespace rehearse
