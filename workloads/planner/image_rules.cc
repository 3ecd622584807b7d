// Images: work on pixels and channels, in whatever layout the input has. Rows are split image by
// image and channels group by group, so nothing here communicates.
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

// This rank's share of `count` equal parts of a row.
double OwnParts(const Plan& plan, const Tensor& tensor, double count) {
  return count / static_cast<double>(Pieces(tensor.layout, plan.builder.sizes(), 1));
}

// One operand, one result: reads X, writes Y.
void ForwardMap(Plan& plan, uint32_t node, Kernel kernel) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(shape.op, kernel, BytesOf(plan, x) + BytesOf(plan, y), {x.buffer},
                           {y.buffer}, 1, shape.attributes);
  plan.State(node).value = y;
}

// Reads dY and writes dX.
void BackwardMap(Plan& plan, uint32_t node, const Tensor& dy, Kernel kernel) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), dy.layout);
  plan.builder.AddMemoryOp(shape.op + " backward", kernel, BytesOf(plan, dx) + BytesOf(plan, dy),
                           {dy.buffer}, {dx.buffer}, 1, shape.attributes);
  plan.PassBack(node, dx);
}

}  // namespace

void ForwardMaxPool(Plan& plan, uint32_t node) { ForwardMap(plan, node, Kernel::kMaxPool); }

// Reads dY, X and Y to see which was the largest.
void BackwardMaxPool(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), x.layout);
  plan.builder.AddMemoryOp(
      shape.op + " backward", Kernel::kMaxPoolBackward, 2 * (BytesOf(plan, dx) + BytesOf(plan, dy)),
      {dy.buffer, x.buffer, plan.State(node).value.buffer}, {dx.buffer}, 1, shape.attributes);
  plan.PassBack(node, dx);
}

void ForwardUpsample(Plan& plan, uint32_t node) { ForwardMap(plan, node, Kernel::kUpsample); }
void BackwardUpsample(Plan& plan, uint32_t node, const Tensor& dy) {
  BackwardMap(plan, node, dy, Kernel::kUpsampleBackward);
}

void ForwardFlatten(Plan& plan, uint32_t node) { ForwardMap(plan, node, Kernel::kFlatten); }
void BackwardFlatten(Plan& plan, uint32_t node, const Tensor& dy) {
  BackwardMap(plan, node, dy, Kernel::kFlattenBackward);
}

void ForwardConcatenate(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& z = plan.Input(node, 1);
  const Tensor x = plan.builder.Redistribute(plan.Input(node), z.layout);
  const Tensor y = plan.MakeValue(node, z);
  plan.builder.AddMemoryOp(shape.op, Kernel::kConcatenate, 2 * BytesOf(plan, y),
                           {x.buffer, z.buffer}, {y.buffer}, 1,
                           {OwnParts(plan, y, shape.attributes.front())});
  plan.State(node).value = y;
}

void BackwardConcatenate(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor dx = plan.MakeGradient(shape.inputs[0], dy.layout);
  const Tensor dz = plan.MakeGradient(shape.inputs[1], dy.layout);
  plan.builder.AddMemoryOp(shape.op + " backward", Kernel::kSeparate, 2 * BytesOf(plan, dy),
                           {dy.buffer}, {dx.buffer, dz.buffer}, 1,
                           {OwnParts(plan, dy, shape.attributes.front())});
  plan.PassBack(node, dz, 1);
  plan.PassBack(node, dx);
}

// Reads X twice, for the sums and to normalise it.
void ForwardGroupNorm(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor y = plan.MakeValue(node, x);
  const auto pixels = static_cast<uint64_t>(shape.attributes[0]);
  const auto groups = static_cast<uint64_t>(shape.attributes[1]);
  const Tensor moments =
      plan.builder.MakeTensor(shape.name + " moments", shape.rows / pixels, 2 * groups, x.layout,
                              DType::kFp32, SizeOf(DType::kFp32));
  plan.builder.AddMemoryOp(shape.op, Kernel::kGroupNorm, 3 * BytesOf(plan, x),
                           {x.buffer, plan.parameters.arrays.Vector(shape.vectors[0]).value,
                            plan.parameters.arrays.Vector(shape.vectors[1]).value},
                           {y.buffer, moments.buffer}, 1,
                           {shape.attributes[0], OwnParts(plan, x, shape.attributes[1])});
  plan.State(node).value = y;
  plan.State(node).saved = {moments.buffer};
}

// Reads X and dY for the sums, once more to write dX.
void BackwardGroupNorm(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), x.layout);
  const BufferId gain = plan.parameters.arrays.Vector(shape.vectors[0]).gradient;
  const BufferId bias = plan.parameters.arrays.Vector(shape.vectors[1]).gradient;
  plan.builder.AddMemoryOp(
      shape.op + " backward", Kernel::kGroupNormBackward, 5 * BytesOf(plan, x),
      {x.buffer, dy.buffer, plan.parameters.arrays.Vector(shape.vectors[0]).value,
       plan.State(node).saved.front(), gain, bias},
      {dx.buffer, gain, bias}, 2, {shape.attributes[0], OwnParts(plan, x, shape.attributes[1])});
  plan.PassBack(node, dx);
}

void ForwardModulate(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node, 1);
  const Tensor pairs = plan.builder.Redistribute(plan.Input(node), x.layout);
  const Tensor y = plan.MakeValue(node, x);
  plan.builder.AddMemoryOp(shape.op, Kernel::kModulate, 2 * BytesOf(plan, x),
                           {x.buffer, pairs.buffer}, {y.buffer}, 1, shape.attributes);
  plan.State(node).value = y;
  plan.State(node).operand = pairs;
}

void BackwardModulate(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  const Tensor& x = plan.Input(node, 1);
  const Tensor& pairs = plan.State(node).operand;
  const Tensor dx = plan.MakeGradient(shape.inputs[1], x.layout);
  const Tensor dpairs = plan.MakeGradient(shape.inputs[0], pairs.layout);
  plan.builder.AddMemoryOp(shape.op + " backward", Kernel::kModulateBackward, 3 * BytesOf(plan, x),
                           {dy.buffer, x.buffer, pairs.buffer}, {dx.buffer, dpairs.buffer}, 1,
                           shape.attributes);
  plan.PassBack(node, dx, 1);
  plan.PassBack(node, dpairs);
}

}  // namespace rehearse
