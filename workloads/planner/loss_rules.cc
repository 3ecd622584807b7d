// Losses. Cross entropy in fp32 with copies of the logits, or fused (kernel_costs.h). If rows are
// split, the ranks' maxima are combined first, then sums and the label's logit: three numbers per
// row.
#include <vector>

#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

// PyTorch's own cross entropy, op by op, of logits in fp32; layers by torch.compile may have such a
// loss, too. Forward there are the logits, their copy in fp32 and its log-softmax, which is kept.
// On the way back come the gradients behind and before the log-softmax, both in fp32, and the last
// one is cast. With the vocabulary split over ranks there is one array more, for what the
// log-softmax is exponentiated to and added to (pytorch/pytorch, torch/distributed/tensor/parallel/
// loss.py: _nll_loss_and_log_softmax_backward returns (grad_input + torch.exp(x)) * grad_output).
//
// These arrays are there for their memory alone: ops that take no time touch them.
bool GoesOpByOp(const Training& training) {
  return !training.fused_cross_entropy && training.kernels != KernelStyle::kFused;
}
// In training in fp32 there is nothing to cast.
bool MakesCopies(const Plan& plan) {
  return GoesOpByOp(plan.training) && plan.builder.precision() != DType::kFp32;
}

class WideLogits {
 public:
  WideLogits(const Tensor& like, PlanBuilder* builder) : like_(like), builder_(*builder) {}

  // An array that lives from here on.
  BufferId Make(const char* name) {
    const Tensor array = builder_.MakeTensor(name, like_.rows, like_.columns, like_.layout,
                                             DType::kFp32, SizeOf(DType::kFp32));
    Touch(array.buffer);
    return array.buffer;
  }
  // To here.
  void Touch(BufferId array) {
    builder_.AddMemoryOp("wide logits", Kernel::kCopy, KernelCost{0, 0}, {array}, {array});
  }

 private:
  const Tensor& like_;
  PlanBuilder& builder_;
};

}  // namespace

void ForwardCrossEntropy(Plan& plan, uint32_t node) {
  PlanBuilder& builder = plan.builder;
  const std::string& name = plan.Node(node).name;
  const std::vector<double>& attributes = plan.Node(node).attributes;
  const Tensor& x = plan.Input(node);
  const double elements = builder.LocalElements(x);
  const double rows = static_cast<double>(builder.LocalRows(x));

  const LossCosts costs = CostsOfCrossEntropy(plan.training, elements, plan.element());
  WideLogits wide(x, &builder);
  const BufferId copy = MakesCopies(plan) ? wide.Make("wide logits") : BufferId();
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
  if (copy.IsSet()) wide.Touch(copy);
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
  WideLogits wide(x, &plan.builder);
  std::vector<BufferId> behind;  // what the gradient is made of
  if (GoesOpByOp(plan.training)) {
    behind.push_back(wide.Make("d log-softmax"));
    if (!SplitAxes(x.layout, 1).empty()) behind.push_back(wide.Make("d log-softmax, summed"));
  }
  if (MakesCopies(plan)) {
    const BufferId gradient = wide.Make("d wide logits");
    for (const BufferId array : behind) wide.Touch(array);
    behind = {gradient};
  }
  const Tensor dx = plan.MakeGradient(plan.Node(node).inputs.front(), x.layout);
  plan.builder.AddMemoryOp(
      "cross entropy backward", Kernel::kCrossEntropyBackward,
      CostsOfCrossEntropy(plan.training, plan.builder.LocalElements(x), plan.element()).backward,
      plan.State(node).saved, {dx.buffer}, plan.Node(node).attributes);
  for (const BufferId array : behind) wide.Touch(array);
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
