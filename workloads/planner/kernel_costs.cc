#include "workloads/planner/kernel_costs.h"

namespace rehearse {
namespace {

constexpr double kBytesOfFloat = 4;  // bytes

// From one precision to fp32 or back: nothing if it is already fp32.
double CastBytes(double element) { return element == kBytesOfFloat ? 0 : element + kBytesOfFloat; }

}  // namespace

KernelCost ElementwiseCosts::Bias(double elements, uint32_t pieces) const {
  if (pieces == 0 || style != KernelStyle::kFused) return {0, 0};
  return {2 * elements * element, pieces};
}

// Column sums; if the forward op splits arrays, this one joins their gradients first.
KernelCost ElementwiseCosts::BiasBackward(double elements, uint32_t pieces) const {
  return pieces <= 1 ? KernelCost{elements * element, 1} : KernelCost{3 * elements * element, 2};
}

KernelCost ElementwiseCosts::BiasGelu(double elements) const { return {2 * elements * element, 1}; }

// dY and X to dX, then its column sums.
KernelCost ElementwiseCosts::BiasGeluBackward(double elements) const {
  return {4 * elements * element, 2};
}

// Eager: silu reads and writes, the product reads both and writes.
KernelCost ElementwiseCosts::SwiGlu(double results) const {
  if (style == KernelStyle::kEager) return {5 * results * element, 2};
  return {3 * results * element, 1};
}

// Eager: both factors' gradients and silu's, each of two arrays. Fused: dY, both operands and two
// gradients, dY and one operand again; the weights' gradients read dY and both operands.
KernelCost ElementwiseCosts::SwiGluBackward(double results, bool weighs) const {
  switch (style) {
    case KernelStyle::kEager:
      return {9 * results * element, 3};
    case KernelStyle::kFused:
      return {(weighs ? 10 : 7) * results * element, weighs ? 2u : 1u};
    case KernelStyle::kCompiled:
      return {5 * results * element, 1};
  }
  return {};
}

// Each operand, one half of the columns, is read and written; both are joined.
KernelCost ElementwiseCosts::Clamp(double results) const {
  if (style == KernelStyle::kCompiled) return {0, 0};
  return {8 * results * element, 3, 2 * results, 4 * results * element};
}

// Of one operand a comparison (a byte of mask) and a choice, of the other two comparisons, their
// conjunction and a choice; both gradients are joined. All but the conjunction and the join work on
// halves of the columns.
KernelCost ElementwiseCosts::ClampBackward(double results) const {
  if (style == KernelStyle::kCompiled) return {0, 0};
  return {results * (11 * element + 8), 7, 5 * results, results * (7 * element + 5)};
}

// The product of the bias with the weights (4), both broadcast, the sum (8), the join (8), and the
// cast back.
KernelCost ElementwiseCosts::ExpertBias(double elements, uint32_t experts) const {
  if (style == KernelStyle::kCompiled) return {2 * elements * element, 1};
  return {elements * (20 + element + CastBytes(element)), 2 * experts + 2, elements, 4 * elements};
}

// Cast, cast back, join; products with the weights and the bias, which are broadcast (8 each), and
// their sums (4 each).
KernelCost ElementwiseCosts::ExpertBiasBackward(double elements, uint32_t experts) const {
  if (style == KernelStyle::kCompiled) return {elements * element, 1};
  return {elements * (24 + 2 * element + 2 * CastBytes(element)), 6 * experts + 2, 2 * elements,
          16 * elements};
}

// Eager: a ReLU, then its square.
KernelCost ElementwiseCosts::SquaredRelu(double elements) const {
  if (style == KernelStyle::kEager) return {4 * elements * element, 2};
  return {2 * elements * element, 1};
}

// Eager, the square's gradient is a power (2), twice that (2) and its product with dY (3), and the
// ReLU's a choice (3).
KernelCost ElementwiseCosts::SquaredReluBackward(double elements) const {
  if (style == KernelStyle::kEager) return {10 * elements * element, 4};
  return {3 * elements * element, 1};
}

// A byte of mask per element.
KernelCost ElementwiseCosts::Dropout(double elements) const {
  const double mask = style == KernelStyle::kCompiled ? 0 : 1;
  return {elements * (2 * element + mask), 1};
}

// Reads X and Z, writes the sum and the mask; eager: dropout's result is also written and read.
KernelCost ElementwiseCosts::Residual(double elements) const {
  switch (style) {
    case KernelStyle::kFused:
      return {elements * (3 * element + 1), 1};
    case KernelStyle::kEager:
      return {elements * (5 * element + 1), 2};
    case KernelStyle::kCompiled:
      return {elements * 3 * element, 1};
  }
  return {};
}

// Through the dropout, then the bias's sums.
KernelCost ElementwiseCosts::ResidualBackward(double elements) const {
  const double mask = style == KernelStyle::kCompiled ? 0 : 1;
  return {elements * (3 * element + mask), 2};
}

KernelCost ElementwiseCosts::Norm(double elements, bool is_rms, bool follows_sum) const {
  if (style == KernelStyle::kCompiled && follows_sum) return {elements * element, 0};
  if (style == KernelStyle::kEager && is_rms) {
    // Cast, square (8), mean (4), times 1/rms (8), cast, times gain; both factors are broadcast.
    return {elements * (2 * CastBytes(element) + 20 + 2 * element), 6, 2 * elements,
            elements * (8 + 2 * element)};
  }
  return {2 * elements * element, 1};
}

// X and dY to dX; both once more for the sums of the gain's and bias's gradients.
KernelCost ElementwiseCosts::NormBackward(double elements, bool is_rms, bool adds,
                                          bool is_frozen) const {
  if (is_frozen) {
    // One product and one sum of the gain less, or no second reading of X and dY.
    KernelCost cost = NormBackward(elements, is_rms, adds, /*is_frozen=*/false);
    const bool is_eager = style == KernelStyle::kEager && is_rms;
    cost.bytes -= (is_eager ? 4 : 2) * elements * element;
    cost.kernels -= is_eager ? 2 : 1;
    return cost;
  }
  if (style == KernelStyle::kEager && is_rms) {
    // Of the gain: both products (5 accesses) and the sum (1). Of the scale: dX (8), the product
    // with X (12) and its sum (4). Of mean and square: 12. Both ways added (12), two casts. Both
    // factors are broadcast.
    const double bytes = elements * (6 * element + 48 + 2 * CastBytes(element));
    return {bytes + (adds ? 3 * elements * element : 0), adds ? 11u : 10u, 2 * elements,
            elements * (8 + 2 * element)};
  }
  if (!adds) return {5 * elements * element, 2};
  return style == KernelStyle::kCompiled ? KernelCost{6 * elements * element, 2}
                                         : KernelCost{8 * elements * element, 3};
}

// PyTorch's kernels, for Q and K each: times the cosine (2), half turned round (1), joined (2),
// times the sine (2), sum (3). All but the sum work on halves of heads or with factors that are
// broadcast. Scaled, Megatron-LM joins what is turned and what is not, which is nothing (2;
// megatron/core/models/common/embeddings/rope_utils.py).
KernelCost ElementwiseCosts::Rotary(double elements, bool scaled) const {
  const bool is_scaled = scaled && style == KernelStyle::kFused;
  if (style == KernelStyle::kEager || is_scaled)
    return {(is_scaled ? 12 : 10) * elements * element, is_scaled ? 12u : 10u, 3.5 * elements,
            7 * elements * element};
  return {2 * elements * element, style == KernelStyle::kFused ? 2u : 1u};
}

// For Q and K each: times the cosine (2) and the sine (2), half turned round (1), both halves
// copied (2) into zeros (2) and added to the rest (6). Scaled, the whole is copied (2) into zeros
// (2) and added to nothing's zeros (3).
KernelCost ElementwiseCosts::RotaryBackward(double elements, bool scaled) const {
  const bool is_scaled = scaled && style == KernelStyle::kFused;
  if (style == KernelStyle::kEager || is_scaled)
    return {(is_scaled ? 22 : 15) * elements * element, is_scaled ? 26u : 18u, 3.5 * elements,
            7 * elements * element};
  return Rotary(elements, scaled);
}

LossCosts CostsOfCrossEntropy(const Training& training, double elements, double element) {
  LossCosts costs;
  if (training.fused_cross_entropy || training.kernels == KernelStyle::kCompiled) {
    costs.maximum = {0, 0};
    costs.exponentials = {elements * 2 * element, 1};
    costs.backward = {elements * 2 * element, 1};
    return costs;
  }
  const double cast = CastBytes(element);
  if (training.kernels == KernelStyle::kEager) {
    // A copy in fp32, log_softmax (its input twice, its result); backward the gradient of the
    // picked element in an array of zeros (4), log_softmax' (16), and the cast back.
    costs.maximum = {elements * cast, element == kBytesOfFloat ? 0u : 1u};
    costs.exponentials = {elements * 12, 2};
    costs.backward = {elements * (20 + cast), 3};
    return costs;
  }
  // Megatron-LM (megatron/core/tensor_parallel/cross_entropy.py): convert and maximum (4); subtract
  // (8), exponentiate (8), sum (4); then normalise (8), scale (8) and convert the gradient back.
  // Maxima, sums and scales are broadcast.
  costs.maximum = {elements * (cast + 4), 2};
  costs.exponentials = {elements * 20, 3, elements, elements * 8};
  costs.backward = {elements * (16 + cast), 3, 2 * elements, elements * 16};
  return costs;
}

namespace {

bool PermutesByPyTorch(const Training& training) {
  return training.kernels == KernelStyle::kEager ||
         (training.kernels == KernelStyle::kFused && !training.fused_permutation);
}

}  // namespace

PermutationCosts CostsOfPermutation(const Training& training, double tokens, double sent,
                                    double element) {
  PermutationCosts costs;
  const bool is_fused = training.kernels == KernelStyle::kFused;
  if (!PermutesByPyTorch(training)) {
    // Inductor sorts an index first.
    const uint32_t kernels = is_fused ? 1 : 2;
    costs.permute = {(tokens + sent) * element, kernels};
    costs.permute_backward = costs.permute;
    costs.combine = costs.permute;
    costs.combine_backward = {(tokens + (is_fused ? 1 : 2) * sent) * element, kernels};
    return costs;
  }
  // Three kernels for the index; then rows are read and written.
  const KernelCost picked = {2 * sent * element, 1, sent, 2 * sent * element};
  costs.permute = picked;
  costs.permute.kernels += 3;
  // Zeros; each row is read and added (3).
  costs.permute_backward = {(tokens + 3 * sent) * element, 2, sent, 3 * sent * element};
  costs.combine = costs.permute_backward;
  costs.combine_backward = picked;
  if (is_fused) return costs;
  // Rows times their weights (2), which are broadcast; backward that once more, and the weights'
  // own gradients are sums (1) of products (3).
  costs.combine = {(tokens + 5 * sent) * element, 3, 2 * sent, 5 * sent * element};
  costs.combine_backward = {8 * sent * element, 4, 2 * sent, 4 * sent * element};
  return costs;
}

KernelCost CostOfOrder(const Training& training, double elements, double element, bool padded) {
  const double bytes = 2 * elements * element;
  if (padded && PermutesByPyTorch(training)) return {bytes, 1, elements, bytes};
  return {bytes, 1};
}

// A copy in fp32, then log_softmax: its input twice, its result.
KernelCost CostOfMetric(double elements, double element) {
  return {elements * (CastBytes(element) + 12), element == kBytesOfFloat ? 2u : 3u};
}

OptimizerCosts CostsOfAdam(const Training& training, double elements, uint32_t arrays,
                           double gradient_bytes, double state_bytes, double parameter_bytes) {
  if (training.optimizer == OptimizerKernels::kFused) {
    return {{gradient_bytes, 1},
            {gradient_bytes + 2 * state_bytes + elements * parameter_bytes, 1}};
  }
  // Decay (2 accesses), first moment (3), second (2 + 3), root (2), two divisors (2 + 2), update
  // (4) of fp32 numbers, or of those of parameters that it updates themselves; gradients are scaled
  // first (read and written).
  constexpr double kAccesses = 20;
  constexpr uint32_t kOperations = 8;
  const bool is_loop = training.optimizer == OptimizerKernels::kLoop;
  // Operations on lists take up to this many arrays per launch.
  constexpr uint32_t kArraysAtATime = 30;
  const uint32_t launches = is_loop ? arrays : (arrays + kArraysAtATime - 1) / kArraysAtATime;
  const bool is_in_place = training.masters == MasterWeights::kNone;
  const double number = is_in_place ? SizeOf(training.precision).value() : kBytesOfFloat;
  const bool is_cast = !is_in_place && parameter_bytes < kBytesOfFloat;
  const double cast = is_cast ? kBytesOfFloat + parameter_bytes : 0;
  return {
      {gradient_bytes, launches},
      {2 * gradient_bytes + elements * (kAccesses * number + cast), (kOperations + 1) * launches}};
}

// Moments: reads gradient, weight and both moments, writes moments and, over the gradient, the
// direction. Norms: reads weight, reads direction. Step: reads both, writes the weight.
LambCosts CostsOfLamb(const LambSizes& sizes) {
  const double weights = sizes.elements * sizes.weight;
  const double moments = sizes.elements * 2 * kBytesOfFloat;
  return {{2 * sizes.gradient_bytes + weights + 2 * moments, 1},
          {sizes.gradient_bytes + weights, 2},
          {sizes.gradient_bytes + 2 * weights + sizes.elements * sizes.parameter, 1}};
}

}  // namespace rehearse
