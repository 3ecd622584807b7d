// The causal attention core over this rank's rows and heads, fused: scores are never stored.
#include "workloads/node_rules.h"

namespace rehearse {
namespace {

// Positions in the attributes of a node.
enum AttentionAttribute : uint8_t { kSequence, kGroups, kHeadsOfGroup, kHeadSize, kCausal };

// QK^T and PV are 4·s·h flops a token, half of which the causal mask saves.
void AddAttention(Plan& plan, uint32_t node, const std::string& name, Kernel kernel, double passes,
                  double traffic, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes) {
  const std::vector<double>& attributes = plan.Node(node).attributes;
  const Tensor& y = plan.states[node].value;
  Compute compute;
  compute.kind = ComputeKind::kAttention;
  compute.kernel = kernel;
  compute.dtype = plan.builder.precision();
  compute.flops = Flops(passes * (attributes[kCausal] != 0 ? 2 : 4) * attributes[kSequence] *
                        plan.builder.LocalElements(y));
  compute.bytes =
      Bytes(traffic * plan.element() *
            (plan.builder.LocalElements(plan.Input(node)) + plan.builder.LocalElements(y)));
  compute.attributes = attributes;
  compute.attributes[kGroups] /= static_cast<double>(Pieces(y.layout, plan.builder.sizes(), 1));
  plan.builder.AddCompute(name, compute, reads, writes);
}

}  // namespace

void ForwardAttention(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  const auto heads =
      static_cast<uint64_t>(shape.attributes[kGroups] * shape.attributes[kHeadsOfGroup]);
  const Tensor sums = plan.builder.MakeTensor(shape.name + " sums", shape.rows, heads, x.layout,
                                              DType::kFp32, SizeOf(DType::kFp32));
  plan.states[node].value = y;
  plan.states[node].saved = {sums.buffer};
  AddAttention(plan, node, shape.op, Kernel::kAttention, 1, 1, {x.buffer}, {y.buffer, sums.buffer});
}

// 2.5 times the forward pass, with the scores computed again (FlashAttention-2).
void BackwardAttention(Plan& plan, uint32_t node, const Tensor& dy) {
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  const NodeState& state = plan.states[node];
  AddAttention(plan, node, plan.Node(node).op + " backward", Kernel::kAttentionBackward, 2.5, 2,
               {dy.buffer, x.buffer, state.value.buffer, state.saved.front()}, {dx.buffer});
  plan.PassBack(node, dx);
}

}  // namespace rehearse
