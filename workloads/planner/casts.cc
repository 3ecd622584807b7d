#include "workloads/planner/casts.h"

#include "sim/base/error.h"

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

bool KeepsOnlyNarrow(const Training& training) {
  return training.narrow_parameters && training.products != ProductRecipe::kMxfp8;
}

double BytesOfCopy(ProductRecipe recipe) {
  return SizeOf(TypeOf(recipe)).value() + ScalesOf(recipe);
}

KernelCost CostOfCast(ProductRecipe recipe, double elements, double element, CastBehind behind,
                      uint32_t copies) {
  if (recipe == ProductRecipe::kFp8 && behind == CastBehind::kNorm) return {0, 0};
  const bool is_known = recipe == ProductRecipe::kFp8Current && behind != CastBehind::kOther;
  const uint32_t reads = LooksForLargest(recipe) && !is_known ? 2 : 1;
  return {elements * (reads * element + copies * BytesOfCopy(recipe)), reads};
}

KernelCost CostOfTurn(ProductRecipe recipe, double elements) {
  return {elements * 2 * BytesOfCopy(recipe), 1};
}

}  // namespace rehearse
