#include "workloads/planner/casts.h"

#include <algorithm>

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

// What a cast reaches of the rate that memory-bound kernels do.
double ShareOf(ProductRecipe recipe) {
  if (recipe == ProductRecipe::kMxfp8) return 0.85;
  return recipe == ProductRecipe::kNvfp4 ? 0.72 : 1;
}

// Bytes of an element that take as long.
constexpr double kRoundedAtRandom = 1.4;
constexpr double kOrderOfScales = 0.6;
// Of the memory's rate.
constexpr double kShareOfLooking = 0.71;

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

uint32_t CopiesOf(const Training& training) {
  const bool has_one_scale =
      training.products == ProductRecipe::kFp8 || training.products == ProductRecipe::kFp8Current;
  return training.reads_columns && has_one_scale ? 1 : 2;
}

KernelCost CostOfCast(const Training& training, const CastWork& work) {
  const ProductRecipe recipe = training.products;
  const uint32_t copies = std::min(work.copies, CopiesOf(training));
  if (recipe == ProductRecipe::kFp8 && work.behind == CastBehind::kNorm)
    return copies == 2 ? CostOfTurn(recipe, work.elements) : KernelCost{0, 0};
  const bool is_known = recipe == ProductRecipe::kFp8Current && work.behind != CastBehind::kOther;
  const bool looks = LooksForLargest(recipe) && !is_known;
  double bytes = work.element + copies * BytesOfCopy(recipe);
  if (looks) {
    const bool is_slow = recipe == ProductRecipe::kFp8Current && training.reads_columns;
    bytes += work.element / (is_slow ? kShareOfLooking : 1);
  }
  bytes /= ShareOf(recipe);
  uint32_t kernels = looks ? 2 : 1;
  if (recipe == ProductRecipe::kMxfp8) ++kernels;
  if (recipe == ProductRecipe::kNvfp4 && work.is_gradient) bytes += kRoundedAtRandom;
  if (training.orders_scales_apart) {
    bytes += copies * kOrderOfScales;
    kernels += copies;
  }
  return {work.elements * bytes, kernels};
}

KernelCost CostOfTurn(ProductRecipe recipe, double elements) {
  return {elements * 2 * BytesOfCopy(recipe), 1};
}

}  // namespace rehearse
