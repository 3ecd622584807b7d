// The attention core over this rank's rows and heads. A fused core never stores its scores; an
// unfused one has s of them for each row and head: softmax, dropout mask and dropout's result are
// kept for the backward pass (Korthikanti et al. 2022), or made again for it when recomputation is
// selective. Without dropout, softmax alone is.
#include <algorithm>

#include "sim/schedule/attention_part.h"
#include "workloads/planner/attention_ops.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {

uint64_t HeadsOf(const NetworkNode& node) {
  return static_cast<uint64_t>(node.attributes[kAttentionGroups] *
                               node.attributes[kAttentionHeadsOfGroup]);
}

double PairsOfToken(const NetworkNode& node) {
  return MostPairs(PartOf(node.attributes)) / node.attributes[kAttentionSequence];
}

Compute MakeAttention(const Plan& plan, uint32_t node, Kernel kernel, const Tensor& y,
                      const AttentionWork& work) {
  Compute compute;
  compute.kind = ComputeKind::kAttention;
  compute.kernel = kernel;
  compute.attention = plan.training.attention;
  compute.dtype = plan.builder.precision();
  compute.flops = Flops(work.passes * 4 * work.pairs * plan.builder.LocalElements(y));
  compute.bytes = Bytes(work.elements * plan.element());
  compute.attributes = plan.Node(node).attributes;
  compute.attributes[kAttentionGroups] /=
      static_cast<double>(Pieces(y.layout, plan.builder.sizes(), 1));
  return compute;
}

void TurnHeads(Plan& plan, uint32_t node, const Tensor& x, bool back) {
  const NetworkNode& shape = plan.Node(node);
  if (shape.rotary == 0) return;
  const double share = static_cast<double>(shape.rotary) / static_cast<double>(x.columns);
  const double elements = plan.builder.LocalElements(x) * share;
  const ElementwiseCosts costs = plan.costs();
  const auto add = [&](const char* name, const KernelCost& cost) {
    plan.builder.AddMemoryOp(name, Kernel::kCopy, cost, {x.buffer}, {x.buffer});
  };
  // One kernel for Q and one for K.
  const auto both = [](KernelCost cost) {
    cost.kernels *= 2;
    return cost;
  };
  if (shape.has_extra && !back) add("norms of heads", both(costs.Norm(elements, true, false)));
  if (back)
    add("rotary backward", costs.RotaryBackward(elements, shape.scaled_rotary));
  else
    add("rotary", costs.Rotary(elements, shape.scaled_rotary));
  if (shape.has_extra && back)
    add("norms of heads backward", both(costs.NormBackward(elements, true, false)));
}

namespace {

double LocalScores(const Plan& plan, uint32_t node) {
  const Tensor& y = plan.State(node).value;
  const uint64_t heads = HeadsOf(plan.Node(node)) / Pieces(y.layout, plan.builder.sizes(), 1);
  return static_cast<double>(plan.builder.LocalRows(y)) * static_cast<double>(heads) *
         plan.Node(node).attributes[kAttentionSequence];
}

// Models drop scores out where they drop anything out.
bool DropsScores(const Plan& plan) {
  const std::vector<NetworkNode>& nodes = plan.network.nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const NetworkNode& node) { return node.kind == NodeKind::kDropout; });
}

// A fused backward pass has three products with columns of queries and keys and two with those of
// values; forward has one of each.
double FusedBackwardPasses(const NetworkNode& node) {
  const std::vector<double>& attributes = node.attributes;
  if (attributes.size() <= kAttentionValueSize) return kFusedBackwardPasses;
  const double size = attributes[kAttentionHeadSize];
  const double value = attributes[kAttentionValueSize];
  return (3 * size + 2 * value) / (size + value);
}

// QK^T and PV are 4·s·h flops per token, of which a fused core saves what the causal mask (and a
// window) leaves out. An unfused one writes and reads scores: after QK^T, softmax, dropout with its
// mask, before PV: 6·element + 1 bytes; without dropout 4·element.
void AddAttention(Plan& plan, uint32_t node, const std::string& name, Kernel kernel, double passes,
                  double traffic, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& y = plan.State(node).value;
  const bool fused = plan.training.FusesAttention();
  const double pairs = WidthOfCore(shape.attributes) *
                       (fused ? PairsOfToken(shape) : shape.attributes[kAttentionSequence]);
  const double elements =
      plan.builder.LocalElements(plan.Input(node)) + plan.builder.LocalElements(y);
  Compute compute = MakeAttention(plan, node, kernel, y, {passes, pairs, traffic * elements});
  if (!fused) {
    const bool drops = DropsScores(plan);
    const double bytes = drops ? 6 * plan.element() + 1 : 4 * plan.element();
    compute.bytes += Bytes(traffic * LocalScores(plan, node) * bytes);
    compute.kernels = drops ? 5 : 4;
  }
  plan.builder.AddCompute(name, compute, reads, writes);
}

// What an unfused core stores of its scores; backends with fused kernels do without.
BufferId AddScores(Plan& plan, uint32_t node) {
  const double bytes = DropsScores(plan) ? 2 * plan.element() + 1 : plan.element();
  return plan.builder.AddBuffer({.name = plan.builder.Label(plan.Node(node).name + " scores"),
                                 .kind = BufferKind::kActivation,
                                 .bytes = Bytes(LocalScores(plan, node) * bytes),
                                 .dtype = plan.builder.precision()});
}

}  // namespace

void ForwardAttention(Plan& plan, uint32_t node) {
  if (plan.strategy.context) {
    ForwardSharedAttention(plan, node);
    return;
  }
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  // A recomputed core finds Q and K already rotated, unless they are new themselves.
  const bool is_turned =
      plan.builder.tag().phase == Phase::kRecompute &&
      plan.training.recomputation == Recomputation::kSelective &&
      !(plan.training.recomputed_ops.projections || plan.training.recomputed_ops.second_products);
  if (!is_turned) TurnHeads(plan, node, x, /*back=*/false);
  const Tensor y = plan.MakeValue(node, x);
  const Tensor sums = plan.builder.MakeTensor(shape.name + " sums", shape.rows, HeadsOf(shape),
                                              x.layout, DType::kFp32, SizeOf(DType::kFp32));
  plan.State(node).value = y;
  plan.State(node).saved = {sums.buffer};
  std::vector<BufferId> writes = {y.buffer, sums.buffer};
  if (!plan.training.FusesAttention()) {
    writes.push_back(AddScores(plan, node));
    const bool keeps = plan.training.recomputation != Recomputation::kSelective;
    if (keeps) plan.State(node).saved.push_back(writes.back());
  }
  AddAttention(plan, node, shape.op, Kernel::kAttention, 1, 1, {x.buffer}, writes);
}

void BackwardAttention(Plan& plan, uint32_t node, const Tensor& dy) {
  if (plan.strategy.context) {
    BackwardSharedAttention(plan, node, dy);
    return;
  }
  const std::string& op = plan.Node(node).op;
  const Tensor& x = plan.Input(node);
  const NodeState& state = plan.State(node);
  std::vector<BufferId> reads = {dy.buffer, x.buffer, state.value.buffer, state.saved.front()};
  const bool fused = plan.training.FusesAttention();
  if (!fused && plan.training.recomputation == Recomputation::kSelective) {
    const Tag tag = plan.builder.tag();
    plan.builder.set_tag({Phase::kRecompute, tag.layer, tag.micro_batch});
    reads.push_back(AddScores(plan, node));
    AddAttention(plan, node, op, Kernel::kAttention, 1, 1, {x.buffer},
                 {state.value.buffer, state.saved.front(), reads.back()});
    plan.builder.set_tag(tag);
  } else if (!fused) {
    reads.push_back(state.saved.back());
  }
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  AddAttention(plan, node, op + " backward", Kernel::kAttentionBackward,
               fused ? FusedBackwardPasses(plan.Node(node)) : 2, 2, reads, {dx.buffer});
  TurnHeads(plan, node, dx, /*back=*/true);
  plan.PassBack(node, dx);
}

}  // namespace rehearse
