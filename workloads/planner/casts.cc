#include "workloads/planner/casts.h"

#include "workloads/planner/plan.h"

namespace rehearse {
namespace {

// Bytes of scales per element.
double ScalesOf(ProductRecipe recipe) {
  switch (recipe) {
    case ProductRecipe::kNone:
    case ProductRecipe::kFp8:
    case ProductRecipe::kFp8Current:
      return 0;
    case ProductRecipe::kFp8Blockwise:
      return 4.0 / 128;
    case ProductRecipe::kMxfp8:
      return 1.0 / 32;
    case ProductRecipe::kNvfp4:
      return 1.0 / 16;
  }
  CHECK(false);
}

bool LooksForLargest(ProductRecipe recipe) {
  return recipe == ProductRecipe::kFp8Current || recipe == ProductRecipe::kNvfp4;
}

// `is_free`: the kernel before it does it.
Tensor Cast(Plan& plan, const Tensor& tensor, bool follows_norm, bool is_free) {
  const ProductRecipe recipe = plan.training.products;
  PlanBuilder& builder = plan.builder;
  Tensor narrow = builder.MakeTensor("cast " + tensor.name, tensor.rows, tensor.columns,
                                     tensor.layout, TypeOf(recipe), Bytes(BytesOfCopy(recipe)));
  builder.AddMemoryOp(
      "cast " + tensor.name, Kernel::kCopy,
      is_free ? KernelCost{0, 0}
              : CostOfCast(recipe, builder.LocalElements(tensor), plan.element(), follows_norm),
      {tensor.buffer}, {narrow.buffer});
  return narrow;
}

bool IsNarrowNode(const Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const bool multiplies =
      shape.kind == NodeKind::kProduct || shape.kind == NodeKind::kGroupedProduct;
  return multiplies && !shape.window && IsNarrow(plan.training, plan.network, *shape.matrix);
}

}  // namespace

DType TypeOf(ProductRecipe recipe) {
  CHECK(recipe != ProductRecipe::kNone);
  return recipe == ProductRecipe::kNvfp4 ? DType::kFp4 : DType::kFp8;
}

bool IsNarrow(const Training& training, const Network& network, uint32_t matrix) {
  if (training.products == ProductRecipe::kNone) return false;
  const NetworkMatrix& shape = network.matrices[matrix];
  const auto precise = static_cast<int32_t>(training.precise_layers);
  return !shape.IsTable() && shape.role != MatrixRole::kRouter && shape.layer >= precise &&
         shape.layer < network.layers - precise;
}

double BytesOfCopy(ProductRecipe recipe) {
  return SizeOf(TypeOf(recipe)).value() + ScalesOf(recipe);
}

KernelCost CostOfCast(ProductRecipe recipe, double elements, double element, bool follows_norm) {
  if (recipe == ProductRecipe::kFp8 && follows_norm) return {0, 0};
  const uint32_t reads = LooksForLargest(recipe) ? 2 : 1;
  return {elements * (reads * element + 2 * BytesOfCopy(recipe)), reads};
}

KernelCost CostOfTurn(ProductRecipe recipe, double elements) {
  return {elements * 2 * BytesOfCopy(recipe), 1};
}

Tensor CastInput(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  if (!IsNarrowNode(plan, node) || !PartialAxes(x.layout).empty()) return x;
  const NetworkNode& from = plan.Node(plan.Node(node).inputs.front());
  return Cast(plan, x, from.kind == NodeKind::kNorm || from.kind == NodeKind::kRmsNorm,
              plan.training.fused_experts && from.kind == NodeKind::kSwiGlu && from.of_choices);
}

Tensor ToOperand(Plan& plan, uint32_t node, const Tensor& tensor, const Layout& layout) {
  const bool casts = !IsNarrow(tensor.dtype) && IsNarrowNode(plan, node);
  const bool waits = casts && !PartialAxes(tensor.layout).empty();
  // What SwiGLU of experts passes back.
  const bool is_free =
      plan.training.fused_experts && plan.Node(node).matrix &&
      plan.network.matrices[*plan.Node(node).matrix].role == MatrixRole::kExpertFirst;
  Tensor moved = plan.builder.Redistribute(
      casts && !waits ? Cast(plan, tensor, false, is_free) : tensor, layout);
  return waits ? Cast(plan, moved, false, is_free) : moved;
}

}  // namespace rehearse
