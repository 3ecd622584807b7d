// How each kind of node is planned: a table of rules, forward and for each of its two gradients.
//
// A forward rule leaves the node's value (and what its gradients need) in Plan::State. The rule of
// the input gradient takes the gradient of the value and passes gradients on to the inputs; those
// of biases and gains, which the same kernels make, go to Plan::parameters. If the node has a
// matrix, the rule hands what the matrix's gradient is made of to Plan::PassToWeight, at the point
// where that gradient is made if both are made together: after the collectives of dX that may run
// beside it. The rule of the weight gradient makes it, there or in an action of its own.
//
// Costs are the memory traffic of the kernels of a framework that fuses no more than usual (a bias
// with its neighbour).
#pragma once

#include "workloads/planner/plan.h"

namespace rehearse {

struct NodeRule {
  NodeKind kind = NodeKind::kInput;
  void (*forward)(Plan& plan, uint32_t node) = nullptr;
  void (*input_gradient)(Plan& plan, uint32_t node, const Tensor& gradient) = nullptr;
  void (*weight_gradient)(Plan& plan, uint32_t node, const WeightOperands& operands) = nullptr;
};
const NodeRule& RuleOf(NodeKind kind);

// product_rules.cc
double BytesOf(const Plan& plan, const Tensor& tensor);  // of this rank's part
void ForwardProduct(Plan& plan, uint32_t node);
void InputGradientOfProduct(Plan& plan, uint32_t node, const Tensor& gradient);
// From the layout in which the product leaves it to the one in which it rests.
Tensor Rest(Plan& plan, const ProductLayouts& layouts, Tensor y);
// Whether the two products of a sum, one of which this is, or the sum itself, leave results that
// lie alike, so that they are added before they are brought to where they rest.
bool SumsFirst(const Plan& plan, uint32_t node);
// The operand of a product that is not computed again, of an input that is.
void TakeOperandAgain(Plan& plan, uint32_t node);
void WeightGradientOfProduct(Plan& plan, uint32_t node, const WeightOperands& operands);
void ForwardEmbedding(Plan& plan, uint32_t node);
void InputGradientOfEmbedding(Plan& plan, uint32_t node, const Tensor& gradient);
void WeightGradientOfEmbedding(Plan& plan, uint32_t node, const WeightOperands& operands);
// summa_rules.cc: products of strategies that ask for it
void ForwardSumma(Plan& plan, uint32_t node);
void InputGradientOfSumma(Plan& plan, uint32_t node, const Tensor& gradient);
void WeightGradientOfSumma(Plan& plan, uint32_t node, const WeightOperands& operands);
// norm_rules.cc; like all below they have no matrix, and one rule for all of their gradients
void ForwardNorm(Plan& plan, uint32_t node);
void BackwardNorm(Plan& plan, uint32_t node, const Tensor& dy);
// element_rules.cc
void ForwardBias(Plan& plan, uint32_t node);
void BackwardBias(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardBiasGelu(Plan& plan, uint32_t node);
void BackwardBiasGelu(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardSwiGlu(Plan& plan, uint32_t node);
void BackwardSwiGlu(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardSquaredRelu(Plan& plan, uint32_t node);
void BackwardSquaredRelu(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardRelu(Plan& plan, uint32_t node);
void BackwardRelu(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardDropout(Plan& plan, uint32_t node);
void BackwardDropout(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardResidual(Plan& plan, uint32_t node);
void BackwardResidual(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardAdd(Plan& plan, uint32_t node);
void BackwardAdd(Plan& plan, uint32_t node, const Tensor& dy);
// image_rules.cc
void ForwardMaxPool(Plan& plan, uint32_t node);
void BackwardMaxPool(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardUpsample(Plan& plan, uint32_t node);
void BackwardUpsample(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardFlatten(Plan& plan, uint32_t node);
void BackwardFlatten(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardConcatenate(Plan& plan, uint32_t node);
void BackwardConcatenate(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardGroupNorm(Plan& plan, uint32_t node);
void BackwardGroupNorm(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardModulate(Plan& plan, uint32_t node);
void BackwardModulate(Plan& plan, uint32_t node, const Tensor& dy);
// attention_rules.cc
void ForwardAttention(Plan& plan, uint32_t node);
void BackwardAttention(Plan& plan, uint32_t node, const Tensor& dy);
// latent_rules.cc
void ForwardJoinHeads(Plan& plan, uint32_t node);
void BackwardJoinHeads(Plan& plan, uint32_t node, const Tensor& dx);
// state_space_rules.cc
void ForwardStateSpace(Plan& plan, uint32_t node);
void BackwardStateSpace(Plan& plan, uint32_t node, const Tensor& dy);
// expert_rules.cc
void ForwardRoute(Plan& plan, uint32_t node);
void BackwardRoute(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardDispatch(Plan& plan, uint32_t node);
void BackwardDispatch(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardArrive(Plan& plan, uint32_t node);
void BackwardArrive(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardGroupedProduct(Plan& plan, uint32_t node);
void InputGradientOfGroupedProduct(Plan& plan, uint32_t node, const Tensor& gradient);
void WeightGradientOfGroupedProduct(Plan& plan, uint32_t node, const WeightOperands& operands);
void ForwardReturn(Plan& plan, uint32_t node);
void BackwardReturn(Plan& plan, uint32_t node, const Tensor& dy);
void ForwardCombine(Plan& plan, uint32_t node);
void BackwardCombine(Plan& plan, uint32_t node, const Tensor& dy);
// loss_rules.cc; a loss takes no gradient, it starts the others
void ForwardCrossEntropy(Plan& plan, uint32_t node);
void BackwardCrossEntropy(Plan& plan, uint32_t node, const Tensor& none);
void ForwardSquaredError(Plan& plan, uint32_t node);
void BackwardSquaredError(Plan& plan, uint32_t node, const Tensor& none);

}  // namespace rehearse
