// Losses. Cross entropy in fp32 with copies of the logits, or fused (kernel_costs.h). If rows are
// split, the ranks' maxima are combined first, then sums and the label's logit: three numbers per
// row.
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

// PyTorch's own cross entropy, op by op, of logits in fp32: on the way back there are at one time
// its log-softmax, the gradients behind and before that, all in fp32; the last one is then cast.
// We have both gradients live as long as the cast, 8 bytes an element. Layers by torch.compile may
// have such a loss too.
constexpr Bytes kGradientsOfLogits(8);
bool MakesCopies(const Training& training) {
  return !training.fused_cross_entropy && training.kernels != KernelStyle::kFused;
}

}  // namespace

void ForwardCrossEntropy(Plan& plan, uint32_t node) {
  PlanBuilder& builder = plan.builder;
  const std::string& name = plan.Node(node).name;
  const std::vector<double>& attributes = plan.Node(node).attributes;
  const Tensor& x = plan.Input(node);
  const double elements = builder.LocalElements(x);
  const double rows = static_cast<double>(builder.LocalRows(x));

  const LossCosts costs = CostsOfCrossEntropy(plan.training, elements, plan.element());
  const Tensor maximum = builder.MakeRowValues(name + " maximum", x, 1);
  builder.AddMemoryOp(name + " maximum", Kernel::kMaximum, costs.maximum, {x.buffer},
                      {maximum.buffer});
  builder.AllReduceRowValues(name + " maximum", maximum, x, Reduction::kMaximum);

  // What is kept for the backward pass: exponentials, or logits.
  const Bytes kept =
      plan.training.fused_cross_entropy ? Bytes(plan.element()) : SizeOf(DType::kFp32);
  const Tensor exponentials =
      builder.MakeTensor("exponentials", x.rows, x.columns, x.layout, DType::kFp32, kept);
  const Tensor statistics = builder.MakeRowValues(name + " statistics", x, 2);
  builder.AddMemoryOp("cross entropy", Kernel::kExponentials, costs.exponentials,
                      {x.buffer, maximum.buffer}, {exponentials.buffer, statistics.buffer},
                      attributes);
  builder.AllReduceRowValues(name + " statistics", statistics, x);

  const Tensor loss = builder.MakeRowValues(name, x, 1);
  builder.AddMemoryOp(name, Kernel::kCrossEntropy, rows * 3 * 4, {statistics.buffer}, {loss.buffer},
                      1, attributes);
  for (uint32_t i = 0; i < plan.training.metrics; ++i) {
    const Tensor watched = builder.MakeRowValues("metric", x, 1);
    builder.AddMemoryOp("metric", Kernel::kMaximum, CostOfMetric(elements, plan.element()),
                        {x.buffer}, {watched.buffer});
  }
  plan.State(node).value = loss;
  plan.State(node).saved = {exponentials.buffer, statistics.buffer};
}

void BackwardCrossEntropy(Plan& plan, uint32_t node, const Tensor&) {
  const Tensor& x = plan.Input(node);
  const NetworkNode& logits = plan.Node(plan.Node(node).inputs.front());
  const Tensor dx = MakesCopies(plan.training)
                        ? plan.builder.MakeTensor("d " + logits.name, x.rows, x.columns, x.layout,
                                                  plan.builder.precision(), kGradientsOfLogits)
                        : plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  plan.builder.AddMemoryOp(
      "cross entropy backward", Kernel::kCrossEntropyBackward,
      CostsOfCrossEntropy(plan.training, plan.builder.LocalElements(x), plan.element()).backward,
      plan.State(node).saved, {dx.buffer}, plan.Node(node).attributes);
  plan.PassBack(node, dx);
}

// Reads x and the target, writes the gradient; split rows add up their losses.
void ForwardSquaredError(Plan& plan, uint32_t node) {
  PlanBuilder& builder = plan.builder;
  const std::string& name = plan.Node(node).name;
  const Tensor& x = plan.Input(node);
  const Tensor loss = builder.MakeRowValues(name, x, 1);
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  builder.AddMemoryOp(name, Kernel::kSquaredError, builder.LocalElements(x) * 3 * plan.element(),
                      {x.buffer}, {loss.buffer, dx.buffer});
  builder.AllReduceRowValues(name, loss, x);
  plan.State(node).value = loss;
  plan.State(node).operand = dx;
}

void BackwardSquaredError(Plan& plan, uint32_t node, const Tensor&) {
  plan.PassBack(node, plan.State(node).operand);
}

}  // namespace rehearse
