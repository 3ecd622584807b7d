#include "workloads/planner/kept_narrow.h"

#include <utility>

#include "workloads/planner/casts.h"

namespace rehearse {
namespace {

constexpr double kScale = 4.0 / 128;

double BytesOfKept(const Plan& plan, uint32_t node) {
  return (plan.Node(node).kind == NodeKind::kAttention ? 1.5 : 1.0) + kScale;
}

}  // namespace

bool IsKeptNarrow(const Network& network, uint32_t node, const Training& training) {
  const NetworkNode& shape = network.nodes[node];
  if (shape.layer < 0 || node + 1 >= network.nodes.size()) return false;
  if (shape.kind == NodeKind::kAttention) return training.keeps_narrow_attention;
  const NetworkNode& next = network.nodes[node + 1];
  return training.keeps_narrow_activations && next.kind == NodeKind::kSwiGlu &&
         next.inputs.front() == node && shape.matrix && IsNarrow(training, network, *shape.matrix);
}

void KeepNarrow(Plan& plan, uint32_t node) {
  Tensor& value = plan.State(node).value;
  PlanBuilder& builder = plan.builder;
  const double bytes = BytesOfKept(plan, node);
  Tensor kept = builder.MakeTensor("kept " + value.name, value.rows, value.columns, value.layout,
                                   DType::kFp8, Bytes(bytes));
  builder.AddMemoryOp("keep " + value.name, Kernel::kCopy,
                      KernelCost{builder.LocalElements(value) * bytes, 0}, {value.buffer},
                      {kept.buffer});
  value = std::move(kept);
}

void WidenKept(Plan& plan, uint32_t node) {
  Tensor& value = plan.State(node).value;
  PlanBuilder& builder = plan.builder;
  const double bytes = BytesOfKept(plan, node) + plan.element();
  Tensor wide = builder.MakeTensor(plan.Node(node).name, value.rows, value.columns, value.layout);
  builder.AddMemoryOp("widen " + value.name, Kernel::kCopy,
                      KernelCost{builder.LocalElements(value) * bytes, 1}, {value.buffer},
                      {wide.buffer});
  value = std::move(wide);
}

}  // namespace rehearse
