#include "workloads/planner/layer_parts.h"

#include <algorithm>

namespace rehearse {

LayerParts::LayerParts(const Network& network, const Training& training, const Unit& unit)
    : begin_(unit.begin), mlp_(unit.end) {
  for (uint32_t node = unit.begin; node < unit.end; ++node) {
    const NetworkNode& shape = network.nodes[node];
    if (shape.part == LayerPart::kAttentionOutput) mlp_ = node + 1;
    if (shape.kind == NodeKind::kDispatch) dispatch_ = node;
    if (shape.kind == NodeKind::kArrive) arrive_ = node;
    if (shape.kind == NodeKind::kReturn) return_ = node;
    if (shape.kind == NodeKind::kCombine) combine_ = node;
    has_experts_ = has_experts_ || shape.kind == NodeKind::kDispatch;
  }
  if (unit.layer < 0) mlp_ = unit.end;
  std::vector<uint32_t> last(unit.end - unit.begin);  // that needs the node's value
  for (uint32_t node = unit.begin; node < unit.end; ++node) last[node - begin_] = node;
  for (uint32_t node = unit.end; node-- > unit.begin;) {
    const NetworkNode& shape = network.nodes[node];
    const uint32_t needs = IsRecomputedOp(network, shape, training) ? last[node - begin_] : node;
    for (const uint32_t input : shape.inputs) {
      if (input < unit.begin) continue;
      last[input - begin_] = std::max(last[input - begin_], needs);
    }
  }
  for (const uint32_t node : last) again_.push_back(Backward(node));
}

PassPart LayerParts::Forward(uint32_t node) const {
  if (!has_experts_) return node < mlp_ ? PassPart::kForwardAttention : PassPart::kForwardExperts;
  if (node < dispatch_ || node >= combine_) return PassPart::kForwardAttention;
  if (node == dispatch_) return PassPart::kForwardDispatch;
  return node < return_ ? PassPart::kForwardExperts : PassPart::kForwardCombine;
}

PassPart LayerParts::Backward(uint32_t node) const {
  if (!has_experts_) return node < mlp_ ? PassPart::kBackwardAttention : PassPart::kBackwardExperts;
  if (node >= combine_) return PassPart::kBackwardCombine;
  if (node > arrive_) return PassPart::kBackwardExperts;
  return node > dispatch_ ? PassPart::kBackwardDispatch : PassPart::kBackwardAttention;
}

}  // namespace rehearse
