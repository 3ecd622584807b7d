// Latent attention's operands become groups of heads as the core takes them
// (workloads/networks/latent_attention.h): queries and keys with values lie head by head; what all
// keys share is present for all heads, and its gradient is summed over them.
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

std::vector<double> AttributesHere(const Plan& plan, uint32_t node, const Layout& columns) {
  std::vector<double> attributes = plan.Node(node).attributes;
  attributes[0] /= static_cast<double>(Pieces(columns, plan.builder.sizes(), 1));
  return attributes;
}

// The layout of `columns`, with `shared` on those axes that split them.
Layout SharedLayout(Layout columns, const Placement& shared) {
  for (const uint32_t axis : SplitAxes(columns, 1)) columns[axis] = shared;
  return columns;
}

// Everything is read and written once.
double BytesOfJoin(const Plan& plan, const Tensor& x) {
  return 2 * plan.builder.LocalElements(x) * plan.element();
}

}  // namespace

void ForwardJoinHeads(Plan& plan, uint32_t node) {
  const Tensor& q = plan.Input(node, 0);
  const Tensor kv = plan.builder.Redistribute(plan.Input(node, 1), q.layout);
  const Tensor shared = plan.builder.Redistribute(plan.Input(node, 2), SharedLayout(q.layout, B()));
  const Tensor x = plan.MakeValue(node, q);
  plan.builder.AddMemoryOp(plan.Node(node).op, Kernel::kJoinHeads, BytesOfJoin(plan, x),
                           {q.buffer, kv.buffer, shared.buffer}, {x.buffer}, 2,
                           AttributesHere(plan, node, x.layout));
  plan.State(node).value = x;
}

void BackwardJoinHeads(Plan& plan, uint32_t node, const Tensor& dx) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor dq = plan.MakeGradient(shape.inputs[0], dx.layout);
  const Tensor dkv = plan.MakeGradient(shape.inputs[1], dx.layout);
  const Tensor shared = plan.MakeGradient(shape.inputs[2], SharedLayout(dx.layout, P()));
  plan.builder.AddMemoryOp(shape.backward_op, Kernel::kSplitHeads, BytesOfJoin(plan, dx),
                           {dx.buffer}, {dq.buffer, dkv.buffer, shared.buffer}, 2,
                           AttributesHere(plan, node, dx.layout));
  plan.PassBack(node, dq, 0);
  plan.PassBack(node, dkv, 1);
  plan.PassBack(node, shared, 2);
}

}  // namespace rehearse
