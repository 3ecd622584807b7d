#include "workloads/planner/node_rules.h"

#include <array>

namespace rehearse {
namespace {

void NoForward(Plan&, uint32_t) {}
void NoGradient(Plan&, uint32_t, const Tensor&) {}

constexpr std::array<NodeRule, kNodeKinds> kRules = {{
    {NodeKind::kInput, NoForward, NoGradient},
    {NodeKind::kEmbedding, ForwardEmbedding, InputGradientOfEmbedding, WeightGradientOfEmbedding},
    {NodeKind::kProduct, ForwardProduct, InputGradientOfProduct, WeightGradientOfProduct},
    {NodeKind::kBias, ForwardBias, BackwardBias},
    {NodeKind::kBiasGelu, ForwardBiasGelu, BackwardBiasGelu},
    {NodeKind::kSwiGlu, ForwardSwiGlu, BackwardSwiGlu},
    {NodeKind::kSquaredRelu, ForwardSquaredRelu, BackwardSquaredRelu},
    {NodeKind::kRelu, ForwardRelu, BackwardRelu},
    {NodeKind::kDropout, ForwardDropout, BackwardDropout},
    {NodeKind::kNorm, ForwardNorm, BackwardNorm},
    {NodeKind::kRmsNorm, ForwardNorm, BackwardNorm},
    {NodeKind::kAttention, ForwardAttention, BackwardAttention},
    {NodeKind::kJoinHeads, ForwardJoinHeads, BackwardJoinHeads},
    {NodeKind::kStateSpace, ForwardStateSpace, BackwardStateSpace},
    {NodeKind::kResidual, ForwardResidual, BackwardResidual},
    {NodeKind::kAdd, ForwardAdd, BackwardAdd},
    {NodeKind::kMaxPool, ForwardMaxPool, BackwardMaxPool},
    {NodeKind::kUpsample, ForwardUpsample, BackwardUpsample},
    {NodeKind::kFlatten, ForwardFlatten, BackwardFlatten},
    {NodeKind::kConcatenate, ForwardConcatenate, BackwardConcatenate},
    {NodeKind::kGroupNorm, ForwardGroupNorm, BackwardGroupNorm},
    {NodeKind::kModulate, ForwardModulate, BackwardModulate},
    {NodeKind::kRoute, ForwardRoute, BackwardRoute},
    {NodeKind::kDispatch, ForwardDispatch, BackwardDispatch},
    {NodeKind::kArrive, ForwardArrive, BackwardArrive},
    {NodeKind::kGroupedProduct, ForwardGroupedProduct, InputGradientOfGroupedProduct,
     WeightGradientOfGroupedProduct},
    {NodeKind::kReturn, ForwardReturn, BackwardReturn},
    {NodeKind::kCombine, ForwardCombine, BackwardCombine},
    {NodeKind::kCrossEntropy, ForwardCrossEntropy, BackwardCrossEntropy},
    {NodeKind::kSquaredError, ForwardSquaredError, BackwardSquaredError},
}};

}  // namespace

const NodeRule& RuleOf(NodeKind kind) {
  const NodeRule& rule = kRules[static_cast<size_t>(kind)];
  CHECK(rule.kind == kind);
  return rule;
}

const ExpertRouting& Plan::RoutingOf(uint32_t route) {
  constexpr size_t kMostKept = 256;
  if (network.draws_by_micro_batch && routings.size() > kMostKept) routings.clear();
  const int32_t drawn = network.draws_by_micro_batch ? builder.tag().micro_batch : 0;
  const auto [found, is_new] = routings.try_emplace({route, drawn});
  if (is_new) found->second = MakeRouting(RoutingAttributes(route));
  return found->second;
}

std::vector<double> Plan::RoutingAttributes(uint32_t node) const {
  std::vector<double> attributes = network.nodes[node].attributes;
  // Further than any seed, or layer, is from another.
  if (network.draws_by_micro_batch) attributes[kRoutingSeed] += 1e12 * builder.tag().micro_batch;
  return attributes;
}

void Plan::PassBack(uint32_t node, Tensor gradient, size_t i) {
  const uint32_t input = network.nodes[node].inputs[i];
  if (network.nodes[input].kind == NodeKind::kInput) return;
  gradient = builder.Redistribute(std::move(gradient), State(input).value.layout);
  std::optional<Tensor>& known = Gradient(input);
  if (known) {
    Tensor sum = MakeGradient(input, gradient.layout);
    builder.AddMemoryOp("add " + sum.name, Kernel::kAdd, 3 * builder.LocalElements(sum) * element(),
                        {gradient.buffer, known->buffer}, {sum.buffer});
    gradient = std::move(sum);
  }
  known = std::move(gradient);
}

void Plan::PassToWeight(uint32_t node, WeightOperands operands) {
  if (network.matrices[*network.nodes[node].matrix].is_frozen) return;
  if (action.puts_off_weights) {
    chunk->put_off.emplace_back(node, std::move(operands));
  } else {
    RuleOf(network.nodes[node].kind).weight_gradient(*this, node, operands);
  }
}

}  // namespace rehearse
