// Element-wise work: biases, activations, dropout, residuals. It is done in whatever layout its
// input has.
#include "workloads/planner/node_rules.h"

namespace rehearse {

double BytesOf(const Plan& plan, const Tensor& tensor) {
  return plan.builder.LocalElements(tensor) * plan.element();
}

namespace {

std::string BackwardName(const NetworkNode& node) {
  return node.backward_op.empty() ? node.op + " backward" : node.backward_op;
}

// A mask with one byte per element (none if it is made again), and the attributes of an op with
// dropout: probability, salt.
Tensor MakeMask(Plan& plan, const std::string& name, const Tensor& like) {
  return plan.builder.MakeTensor(name + " mask", like.rows, like.columns, like.layout,
                                 plan.builder.precision(),
                                 Bytes(plan.training.kernels == KernelStyle::kCompiled ? 0 : 1));
}
// Of a sum of two products.
const ProductLayouts& LayoutsOfSum(const Plan& plan, uint32_t node) {
  return plan.strategy.products[*plan.Node(plan.Node(node).inputs.back()).matrix];
}

std::vector<double> DropoutAttributes(const Plan& plan, uint32_t node) {
  return {plan.Node(node).attributes.front(), static_cast<double>(node)};
}

}  // namespace

void ForwardBias(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const KernelCost cost = plan.costs().Bias(plan.builder.LocalElements(x), shape.kernels);
  plan.builder.AddMemoryOp(shape.op, Kernel::kBias, cost,
                           {x.buffer, plan.parameters.arrays.Vector(shape.vectors.front()).value},
                           {x.buffer});
  plan.State(node).value = x;
}

void BackwardBias(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const BufferId gradient = plan.parameters.arrays.Vector(shape.vectors.front()).gradient;
  const KernelCost cost = plan.costs().BiasBackward(plan.builder.LocalElements(dy), shape.kernels);
  plan.builder.AddMemoryOp(BackwardName(shape), Kernel::kBiasBackward, cost, {dy.buffer, gradient},
                           {gradient});
  plan.PassBack(node, dy);
}

void ForwardBiasGelu(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  const KernelCost cost = plan.costs().BiasGelu(plan.builder.LocalElements(x));
  plan.builder.AddMemoryOp(shape.op, Kernel::kBiasGelu, cost,
                           {x.buffer, plan.parameters.arrays.Vector(shape.vectors.front()).value},
                           {y.buffer});
  plan.State(node).value = y;
}

void BackwardBiasGelu(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), x.layout);
  const BufferId gradient = plan.parameters.arrays.Vector(shape.vectors.front()).gradient;
  plan.builder.AddMemoryOp(
      BackwardName(shape), Kernel::kBiasGeluBackward,
      plan.costs().BiasGeluBackward(plan.builder.LocalElements(dx)),
      {dy.buffer, x.buffer, plan.parameters.arrays.Vector(shape.vectors.front()).value, gradient},
      {dx.buffer, gradient});
  plan.PassBack(node, dx);
}

void ForwardSwiGlu(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  const ElementwiseCosts costs = plan.costs();
  const double results = plan.builder.LocalElements(y);
  const bool is_fused = shape.of_choices && plan.training.fused_experts;
  if (shape.has_extra && !is_fused) {
    plan.builder.AddMemoryOp("clamp " + x.name, Kernel::kCopy, costs.Clamp(results), {x.buffer},
                             {x.buffer});
  }
  plan.builder.AddMemoryOp(shape.op, Kernel::kSwiGlu,
                           is_fused ? costs.SwiGluInProduct(results) : costs.SwiGlu(results),
                           {x.buffer}, {y.buffer});
  plan.State(node).value = y;
}

void BackwardSwiGlu(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), x.layout);
  const ElementwiseCosts costs = plan.costs();
  const double results = plan.builder.LocalElements(dy);
  const bool is_fused = shape.of_choices && plan.training.fused_experts;
  plan.builder.AddMemoryOp(BackwardName(shape), Kernel::kSwiGluBackward,
                           is_fused ? costs.SwiGluInProductBackward(results)
                                    : costs.SwiGluBackward(results, shape.of_choices),
                           {dy.buffer, x.buffer}, {dx.buffer});
  if (shape.has_extra && !is_fused) {
    plan.builder.AddMemoryOp("clamp backward", Kernel::kCopy, costs.ClampBackward(results),
                             {dx.buffer}, {dx.buffer});
  }
  plan.PassBack(node, dx);
}

void ForwardSquaredRelu(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kSquaredRelu,
                           plan.costs().SquaredRelu(plan.builder.LocalElements(x)), {x.buffer},
                           {y.buffer});
  plan.State(node).value = y;
}

void BackwardSquaredRelu(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  plan.builder.AddMemoryOp(BackwardName(plan.Node(node)), Kernel::kSquaredReluBackward,
                           plan.costs().SquaredReluBackward(plan.builder.LocalElements(dy)),
                           {dy.buffer, x.buffer}, {dx.buffer});
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
                           plan.costs().Dropout(plan.builder.LocalElements(x)), {x.buffer},
                           {y.buffer, mask.buffer}, DropoutAttributes(plan, node));
  plan.State(node).value = y;
  plan.State(node).saved = {mask.buffer};
}

void BackwardDropout(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), dy.layout);
  plan.builder.AddMemoryOp(BackwardName(plan.Node(node)), Kernel::kDropoutBackward,
                           plan.costs().Dropout(plan.builder.LocalElements(dy)),
                           {dy.buffer, plan.State(node).saved.front()}, {dx.buffer});
  plan.PassBack(node, dx);
}

void ForwardResidual(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& z = plan.Input(node, 1);
  const Tensor x = plan.builder.Redistribute(plan.Input(node), z.layout);
  const Tensor mask = MakeMask(plan, shape.name, z);
  const Tensor y = plan.MakeValue(node, z);
  plan.builder.AddMemoryOp(
      shape.op, Kernel::kResidual, plan.costs().Residual(plan.builder.LocalElements(z)),
      {x.buffer, z.buffer, plan.parameters.arrays.Vector(shape.vectors.front()).value},
      {y.buffer, mask.buffer}, DropoutAttributes(plan, node));
  plan.State(node).value = y;
  plan.State(node).saved = {mask.buffer};
}

void BackwardResidual(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), dy.layout);
  const BufferId gradient = plan.parameters.arrays.Vector(shape.vectors.front()).gradient;
  plan.builder.AddMemoryOp(BackwardName(shape), Kernel::kDropoutBackward,
                           plan.costs().ResidualBackward(plan.builder.LocalElements(dy)),
                           {dy.buffer, plan.State(node).saved.front(), gradient},
                           {dx.buffer, gradient});
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
  if (SumsFirst(plan, node)) plan.State(node).value = Rest(plan, LayoutsOfSum(plan, node), y);
}

void BackwardAdd(Plan& plan, uint32_t node, const Tensor& dy) {
  if (SumsFirst(plan, node)) {
    // As both products take it.
    const uint32_t matrix = *plan.Node(plan.Node(node).inputs.back()).matrix;
    const Layout& y = plan.parameters.places[matrix].products.y;
    const Tensor gathered = plan.builder.Redistribute(dy, Resolved(y));
    for (const uint32_t input : plan.Node(node).inputs) plan.Gradient(input) = gathered;
    return;
  }
  plan.PassBack(node, dy, 1);
  plan.PassBack(node, dy);
}

}  // namespace rehearse
