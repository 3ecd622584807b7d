// Element-wise work: biases, activations, dropout, residuals. It is done in whatever layout its
// input rests.
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

double BytesOf(const Plan& plan, const Tensor& tensor) {
  return plan.builder.LocalElements(tensor) * plan.element();
}

std::string BackwardName(const NetworkNode& node) {
  return node.backward_op.empty() ? node.op + " backward" : node.backward_op;
}

// A mask of a byte an element, and the attributes of an op that drops out: probability, salt.
Tensor MakeMask(Plan& plan, const std::string& name, const Tensor& like) {
  return plan.builder.MakeTensor(name + " mask", like.rows, like.columns, like.layout,
                                 plan.builder.precision(), Bytes(1));
}
std::vector<double> DropoutAttributes(const Plan& plan, uint32_t node) {
  return {plan.Node(node).attributes.front(), static_cast<double>(node)};
}

}  // namespace

void ForwardBias(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  plan.builder.AddMemoryOp(shape.op, Kernel::kBias, 2 * BytesOf(plan, x),
                           {x.buffer, plan.parameters.Vector(shape.vectors.front())}, {x.buffer},
                           shape.kernels);
  plan.State(node).value = x;
}

void BackwardBias(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const BufferId gradient = plan.parameters.VectorGradient(shape.vectors.front());
  // Where the forward op splits arrays too, this one joins their gradients.
  const uint32_t kernels = shape.kernels == 1 ? 1 : 2;
  plan.builder.AddMemoryOp(BackwardName(shape), Kernel::kBiasBackward,
                           (kernels == 1 ? 1 : 3) * BytesOf(plan, dy), {dy.buffer, gradient},
                           {gradient}, kernels);
  plan.PassBack(node, dy);
}

void ForwardBiasGelu(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(shape.op, Kernel::kBiasGelu, 2 * BytesOf(plan, x),
                           {x.buffer, plan.parameters.Vector(shape.vectors.front())}, {y.buffer});
  plan.State(node).value = y;
}

void BackwardBiasGelu(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), x.layout);
  const BufferId gradient = plan.parameters.VectorGradient(shape.vectors.front());
  plan.builder.AddMemoryOp(
      BackwardName(shape), Kernel::kBiasGeluBackward, 4 * BytesOf(plan, dx),
      {dy.buffer, x.buffer, plan.parameters.Vector(shape.vectors.front()), gradient},
      {dx.buffer, gradient}, 2);
  plan.PassBack(node, dx);
}

void ForwardSwiGlu(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kSwiGlu, BytesOf(plan, x) + BytesOf(plan, y),
                           {x.buffer}, {y.buffer});
  plan.State(node).value = y;
}

void BackwardSwiGlu(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  plan.builder.AddMemoryOp(BackwardName(plan.Node(node)), Kernel::kSwiGluBackward,
                           BytesOf(plan, dy) + 2 * BytesOf(plan, x), {dy.buffer, x.buffer},
                           {dx.buffer});
  plan.PassBack(node, dx);
}

void ForwardRelu(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kRelu, 2 * BytesOf(plan, x), {x.buffer},
                           {y.buffer});
  plan.State(node).value = y;
}

void BackwardRelu(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), dy.layout);
  plan.builder.AddMemoryOp(BackwardName(plan.Node(node)), Kernel::kReluBackward,
                           3 * BytesOf(plan, dy), {dy.buffer, plan.State(node).value.buffer},
                           {dx.buffer});
  plan.PassBack(node, dx);
}

void ForwardDropout(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  const Tensor mask = MakeMask(plan, plan.Node(node).name, x);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kDropout,
                           2 * BytesOf(plan, x) + plan.builder.LocalElements(x), {x.buffer},
                           {y.buffer, mask.buffer}, 1, DropoutAttributes(plan, node));
  plan.State(node).value = y;
  plan.State(node).saved = {mask.buffer};
}

void BackwardDropout(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), dy.layout);
  plan.builder.AddMemoryOp(BackwardName(plan.Node(node)), Kernel::kDropoutBackward,
                           2 * BytesOf(plan, dy) + plan.builder.LocalElements(dy),
                           {dy.buffer, plan.State(node).saved.front()}, {dx.buffer});
  plan.PassBack(node, dx);
}

// Reads x and z, writes the sum and a byte of mask an element.
void ForwardResidual(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& z = plan.Input(node, 1);
  const Tensor x = plan.builder.Redistribute(plan.Input(node), z.layout);
  const Tensor mask = MakeMask(plan, shape.name, z);
  const Tensor y = plan.MakeValue(node, z);
  plan.builder.AddMemoryOp(shape.op, Kernel::kResidual,
                           3 * BytesOf(plan, z) + plan.builder.LocalElements(z),
                           {x.buffer, z.buffer, plan.parameters.Vector(shape.vectors.front())},
                           {y.buffer, mask.buffer}, 1, DropoutAttributes(plan, node));
  plan.State(node).value = y;
  plan.State(node).saved = {mask.buffer};
}

// Through the dropout, with the bias' gradient: reads dy and mask, writes, reads once more.
void BackwardResidual(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), dy.layout);
  const BufferId gradient = plan.parameters.VectorGradient(shape.vectors.front());
  plan.builder.AddMemoryOp(BackwardName(shape), Kernel::kDropoutBackward,
                           3 * BytesOf(plan, dy) + plan.builder.LocalElements(dy),
                           {dy.buffer, plan.State(node).saved.front(), gradient},
                           {dx.buffer, gradient}, 2);
  plan.PassBack(node, dy, 1);
  plan.PassBack(node, dx);
}

void ForwardAdd(Plan& plan, uint32_t node) {
  const Tensor& z = plan.Input(node, 1);
  const Tensor x = plan.builder.Redistribute(plan.Input(node), z.layout);
  const Tensor y = plan.MakeValue(node, z);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kAdd, 3 * BytesOf(plan, z),
                           {x.buffer, z.buffer}, {y.buffer});
  plan.State(node).value = y;
}

void BackwardAdd(Plan& plan, uint32_t node, const Tensor& dy) {
  plan.PassBack(node, dy, 1);
  plan.PassBack(node, dy);
}

}  // namespace rehearse
