// Layer norm and RMS norm, over whole rows: if rows are split, the sums over a rank's columns (one
// or two fp32 numbers per row) are all-reduced first.
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

struct NormKernels {
  Kernel statistics, forward, backward_statistics, backward, backward_add;
  uint64_t numbers;  // per row: in the statistics, and saved
};
constexpr NormKernels kLayerNorm = {Kernel::kNormStatistics,         Kernel::kNorm,
                                    Kernel::kNormBackwardStatistics, Kernel::kNormBackward,
                                    Kernel::kNormBackwardAdd,        2};
constexpr NormKernels kRms = {Kernel::kRmsNormStatistics,         Kernel::kRmsNorm,
                              Kernel::kRmsNormBackwardStatistics, Kernel::kRmsNormBackward,
                              Kernel::kRmsNormBackwardAdd,        1};

bool IsRms(const NetworkNode& node) { return node.kind == NodeKind::kRmsNorm; }

const NormKernels& KernelsOf(const NetworkNode& node) { return IsRms(node) ? kRms : kLayerNorm; }

// Whether a kernel in the same layer has the norm's input at hand.
bool FollowsSum(const Plan& plan, const NetworkNode& node) {
  const NetworkNode& before = plan.Node(node.inputs.front());
  const bool sums = before.kind == NodeKind::kResidual || before.kind == NodeKind::kAdd;
  return sums && before.layer == node.layer;
}

// Sums over the columns of `x`, added to `reads` if its rows are split.
void AddStatistics(Plan& plan, const Tensor& x, const std::string& name, Kernel kernel,
                   uint64_t numbers, double bytes, const std::vector<BufferId>& operands,
                   std::vector<BufferId>* reads) {
  if (SplitAxes(x.layout, 1).empty()) return;
  const Tensor sums = plan.builder.MakeRowValues(name + " statistics", x, numbers);
  plan.builder.AddMemoryOp(name + " statistics", kernel, bytes, operands, {sums.buffer});
  plan.builder.AllReduceRowValues(name + " statistics", sums, x);
  reads->push_back(sums.buffer);
}

}  // namespace

void ForwardNorm(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const NormKernels& kernels = KernelsOf(shape);
  const Tensor& x = plan.Input(node);
  const double bytes = plan.builder.LocalElements(x) * plan.element();
  const Tensor y = plan.MakeValue(node, x);
  const Tensor saved =
      plan.builder.MakeRowValues(shape.name + " rows", x, kernels.numbers, BufferKind::kActivation);
  std::vector<BufferId> reads = {x.buffer};
  for (const uint32_t vector : shape.vectors)
    reads.push_back(plan.parameters.arrays.Vector(vector).value);
  AddStatistics(plan, x, shape.name, kernels.statistics, kernels.numbers, bytes, {x.buffer},
                &reads);
  plan.builder.AddMemoryOp(
      shape.op, kernels.forward,
      plan.costs().Norm(plan.builder.LocalElements(x), IsRms(shape), FollowsSum(plan, shape)),
      reads, {y.buffer, saved.buffer});
  plan.State(node).value = y;
  plan.State(node).saved = {saved.buffer};
}

// Reads x and dy, once more for the gains' and biases' sums, and the gradient that went round the
// norm; writes the sum of both ways.
void BackwardNorm(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const NormKernels& kernels = KernelsOf(shape);
  const Tensor& x = plan.Input(node);
  const uint32_t input = shape.inputs.front();
  const double bytes = plan.builder.LocalElements(x) * plan.element();
  const Tensor dx = plan.MakeGradient(input, x.layout);
  const BufferId gain = plan.parameters.arrays.Vector(shape.vectors.front()).value;
  const std::vector<BufferId> operands = {x.buffer, dy.buffer, gain,
                                          plan.State(node).saved.front()};
  std::vector<BufferId> reads = operands;
  std::vector<BufferId> writes = {dx.buffer};
  for (const uint32_t vector : shape.vectors) {
    reads.push_back(plan.parameters.arrays.Vector(vector).gradient);
    writes.push_back(plan.parameters.arrays.Vector(vector).gradient);
  }
  std::optional<Tensor>& bypass = plan.Gradient(input);
  if (bypass) reads.push_back(bypass->buffer);
  AddStatistics(plan, x, shape.name + " backward", kernels.backward_statistics, kernels.numbers,
                2 * bytes, operands, &reads);
  plan.builder.AddMemoryOp(
      shape.name + " backward", bypass ? kernels.backward_add : kernels.backward,
      plan.costs().NormBackward(plan.builder.LocalElements(x), IsRms(shape), bypass.has_value(),
                                plan.network.vectors[shape.vectors.front()].is_frozen),
      reads, writes);
  bypass = dx;
}

}  // namespace rehearse
