#include "topology/devices/attention_model.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/schedule/attention_part.h"

namespace rehearse {
namespace {

constexpr Seconds kLaunch(2e-6);

AttentionPass Pass(std::array<double, 3> rates, double causal, double setup, double tail) {
  return {.rates = rates, .causal = causal, .setup = setup, .tail = tail};
}

// The rates of an implementation on another device, at so many times the share of the peak, which
// none exceeds.
AttentionRates Times(AttentionRates rates, double forward, double backward) {
  for (double& rate : rates.forward.rates) rate = std::min(1.0, rate * forward);
  for (double& rate : rates.backward.rates) rate = std::min(1.0, rate * backward);
  return rates;
}

// ---- A100 ---------------------------------------------------------------------------------------

// Forward reaches 192 and 227 TFLOP/s for heads of 64 and 128 (Dao 2023, arXiv 2307.08691, Fig. 5).
// Backward is fitted to forward + backward of assets/flash2_a100_fwd_bwd_benchmark.png of
// Dao-AILab/flash-attention 0251105a, 21 bars: median 0.5 %, worst 1.8 %. Heads of 256 are assumed
// to be like 128. The tail is from MooreThreads/SimuMax 4dcaae5, 4 to 64 heads on an A100 PCIe.
AttentionRates Flash2OnAmpere() {
  return {AttentionKernel::kFlash2, 128, Pass({0.65, 0.765, 0.765}, 0.95, 80, 0.65),
          Pass({0.567, 0.65, 0.65}, 0.994, 232, 0.65)};
}

// The Triton kernel of the first generation, which MPT and others trained with in 2023: fitted to
// 20 rates of triton-lang/triton #1917 (July 2023, batch 4, 48 heads of 64, A100): median 0.7 %,
// worst 2.7 %. Other head sizes are assumed to be like 64.
AttentionRates Flash1OnAmpere() {
  return {AttentionKernel::kFlash1, 128, Pass({0.489, 0.489, 0.489}, 0.959, 223, 0.65),
          Pass({0.313, 0.313, 0.313}, 0.897, 270, 0.65)};
}

// xformers' CUTLASS kernels: forward facebookresearch/xformers #389 (160 heads of 128, 8,096
// tokens: 49.8 ms, causal 25.5 ms), backward #479 (causal, 4,096 and 8,192 tokens: 25.8 and 91.4
// ms). Heads of 64 and 256 are to 128 as FlashAttention-2's.
AttentionRates EfficientOnAmpere() {
  return {AttentionKernel::kEfficient, 128, Pass({0.30, 0.35, 0.35}, 0.98, 80, 0.65),
          Pass({0.24, 0.28, 0.28}, 1, 540, 0.65)};
}

// ---- H100 ---------------------------------------------------------------------------------------

// The rates are the labels of arXiv 2407.08608 (FlashAttention-3), fp16: those of the forward
// figures (30 each: median 1.5, 0.9, 1.9 %) and of the backward figures without a mask (heads of
// 128, and of 64 up to 2,048 tokens: 9 each, median 0.4, 0.7, 1.1 %). We assume that backward of
// heads of 256 has the same ratio to 128 as forward, and with FlashAttention-3 the same rate as
// 128.
AttentionRates Flash2OnHopper() {
  return {AttentionKernel::kFlash2, 128, Pass({0.338, 0.389, 0.368}, 0.97, 78, 0.65),
          Pass({0.31, 0.346, 0.327}, 1, 268, 0.65)};
}
AttentionRates CudnnOnHopper() {
  return {AttentionKernel::kCudnn, 128, Pass({0.427, 0.641, 0.629}, 0.91, 118, 0.3),
          Pass({0.481, 0.561, 0.55}, 1, 392, 0.3)};
}
AttentionRates Flash3OnHopper() {
  return {AttentionKernel::kFlash3, 128, Pass({0.516, 0.723, 0.808}, 0.94, 247, 0.3),
          Pass({0.528, 0.619, 0.619}, 1, 458, 0.3)};
}

// ---- B200 ---------------------------------------------------------------------------------------

// cuDNN has blocks of 256 queries. Heads of 128 are from MooreThreads/SimuMax 4dcaae5, 13 causal
// rates of a B200 (4 to 128 heads, 4,096 to 131,072 tokens): forward has a median error of 9.6 %
// and a worst of 28 % with 8 heads, backward 2.6 % and 40 % with 4 heads. Other forward rates are
// from ai-dynamo/aiconfigurator 095f58a51c4c, causal prefill by TensorRT-LLM; backward of heads of
// 64 has the same ratio to 128 as the B200's forward. Exponentials bound the forward pass, shared
// memory the backward one (FlashAttention-4, together.ai/blog/flashattention-4): a B300, which has
// twice the units for exponentials and the B200's shared memory, gains forward only.
AttentionRates CudnnOnBlackwell(double forward_64, double forward_128) {
  constexpr double backward_128 = 0.45;
  constexpr double backward_64 = backward_128 * 0.37 / 0.62;
  return {AttentionKernel::kCudnn, 256, Pass({forward_64, forward_128, forward_128}, 1, 20, 1.2),
          Pass({backward_64, backward_128, backward_128}, 1, 20, 0.15)};
}

// Its kernels are of the A100's kind. Heads of 64 are from Dao-AILab/flash-attention #1589 on a
// B200 (10 rates: median 5 %, worst 13 %); others have the same ratio to 64 as on the H100.
AttentionRates Flash2OnBlackwell() {
  return {AttentionKernel::kFlash2, 128, Pass({0.157, 0.181, 0.171}, 0.97, 57, 0.65),
          Pass({0.149, 0.166, 0.157}, 1, 178, 0.65)};
}

// Older kernels of the A100's kind gain as much from a newer device as FlashAttention-2 does.
std::vector<AttentionRates> OlderKernels(const AttentionRates& flash_2) {
  const AttentionRates ampere = Flash2OnAmpere();
  const double forward = flash_2.forward.rates[1] / ampere.forward.rates[1];
  const double backward = flash_2.backward.rates[1] / ampere.backward.rates[1];
  return {Times(Flash1OnAmpere(), forward, backward),
          Times(EfficientOnAmpere(), forward, backward)};
}

AttentionModel ModelOf(uint32_t multiprocessors, std::vector<AttentionRates> kernels,
                       const std::vector<AttentionRates>& older) {
  kernels.insert(kernels.end(), older.begin(), older.end());
  return {multiprocessors, kLaunch, std::move(kernels)};
}

double RateAt(const AttentionPass& pass, double head_size) {
  if (head_size <= kRatedHeadSizes[0]) return pass.rates[0] * head_size / kRatedHeadSizes[0];
  for (size_t i = 1; i < kRatedHeadSizes.size(); ++i) {
    if (head_size > kRatedHeadSizes[i]) continue;
    const double share =
        (head_size - kRatedHeadSizes[i - 1]) / (kRatedHeadSizes[i] - kRatedHeadSizes[i - 1]);
    return pass.rates[i - 1] + share * (pass.rates[i] - pass.rates[i - 1]);
  }
  return pass.rates.back();
}

// Positions in a core's attributes (sim/schedule/kernel.h).
enum CoreAttribute : size_t { kSequence, kGroups, kHeadsOfGroup, kHeadSize, kCausal, kCount };

}  // namespace

// cuDNN on the A100 is assumed to be as fast as FlashAttention-2.
AttentionModel AmpereAttention(uint32_t multiprocessors) {
  AttentionRates cudnn = Flash2OnAmpere();
  cudnn.kernel = AttentionKernel::kCudnn;
  return ModelOf(multiprocessors, {Flash2OnAmpere(), cudnn},
                 {Flash1OnAmpere(), EfficientOnAmpere()});
}

AttentionModel HopperAttention(uint32_t multiprocessors) {
  return ModelOf(multiprocessors, {CudnnOnHopper(), Flash3OnHopper(), Flash2OnHopper()},
                 OlderKernels(Flash2OnHopper()));
}

AttentionModel BlackwellAttention(uint32_t multiprocessors, double forward_64, double forward_128) {
  return ModelOf(multiprocessors, {CudnnOnBlackwell(forward_64, forward_128), Flash2OnBlackwell()},
                 OlderKernels(Flash2OnBlackwell()));
}

// Forward is from ai-dynamo/aiconfigurator 095f58a51c4c, L40S, causal prefill by vLLM and SGLang.
// We assume that backward has the same ratio to forward as on the A100.
AttentionModel AdaAttention(uint32_t multiprocessors) {
  const AttentionRates flash_2 = {AttentionKernel::kFlash2, 128,
                                  Pass({0.45, 0.575, 0.575}, 1, 120, 0.15),
                                  Pass({0.39, 0.49, 0.49}, 1, 232, 0.15)};
  AttentionRates cudnn = flash_2;
  cudnn.kernel = AttentionKernel::kCudnn;
  return ModelOf(multiprocessors, {flash_2, cudnn}, OlderKernels(flash_2));
}

// No FlashAttention supports the V100. xformers' kernels do, and we assume that they reach the same
// share of the peak as on the A100.
AttentionModel VoltaAttention(uint32_t multiprocessors) {
  return {multiprocessors, kLaunch, {EfficientOnAmpere()}};
}

// Forward is from Dao-AILab/flash-attention #1310 (2,048 tokens, heads of 64 and 128:
// FlashAttention-2 82 and 84, -3 120 and 126, cuDNN 126 and 129 of 148 TFLOP/s); backward has the
// same ratio to forward as on the H100.
AttentionModel H20Attention() {
  const AttentionRates flash_2 = Times(Flash2OnHopper(), 0.60 / 0.389, 0.60 / 0.389);
  return ModelOf(78,
                 {Times(CudnnOnHopper(), 0.93 / 0.641, 0.93 / 0.641),
                  Times(Flash3OnHopper(), 0.96 / 0.723, 0.96 / 0.723), flash_2},
                 OlderKernels(flash_2));
}

AttentionModel CdnaAttention(uint32_t compute_units, double gemm_share) {
  const double factor = gemm_share / 0.821;  // what the A100's products reach in many waves
  return {compute_units, kLaunch, {Times(Flash2OnAmpere(), factor, factor)}};
}

const AttentionRates* FindRates(const AttentionModel& model, AttentionKernel kernel) {
  if (kernel == AttentionKernel::kFused) return model.kernels.data();
  for (const AttentionRates& rates : model.kernels)
    if (rates.kernel == kernel) return &rates;
  return nullptr;
}

namespace {

// The shape with a window, or for a rank's part of a sequence.
std::optional<AttentionShape> ShapeOfPart(const Compute& compute, AttentionShape shape,
                                          bool backward) {
  const AttentionPart part = PartOf(compute.attributes);
  const double pairs = MostPairs(part);
  if (!(pairs > 0)) return std::nullopt;
  const bool has_window = part.window > 0 && part.window < part.sequence;
  // What comes from another rank lies before or after the whole run.
  if (part.step > 0 && !has_window) shape.causal = false;
  shape.sequences_times_heads =
      compute.flops.value() / (2 * (backward ? 5 : 2) * pairs * shape.head_size);
  shape.sequence = part.Length();
  shape.keys = pairs / shape.sequence;
  shape.most_keys = part.step < 0 ? part.sequence : part.Length();
  if (part.causal && has_window) shape.most_keys = std::min(shape.most_keys, part.window);
  return shape;
}

}  // namespace

std::optional<AttentionShape> ShapeOf(const Compute& compute, bool backward) {
  if (compute.attributes.size() < kCount) return std::nullopt;
  AttentionShape shape;
  shape.sequence = compute.attributes[kSequence];
  shape.head_size = compute.attributes[kHeadSize];
  shape.causal = compute.attributes[kCausal] != 0;
  if (!(shape.sequence >= 1 && shape.head_size >= 1)) return std::nullopt;
  if (compute.attributes.size() > kCount) return ShapeOfPart(compute, shape, backward);
  const double products = (backward ? 5 : 2) * (shape.causal ? 0.5 : 1);
  shape.sequences_times_heads =
      compute.flops.value() / (2 * products * shape.sequence * shape.sequence * shape.head_size);
  return shape;
}

Seconds TimeOfCores(const AttentionModel& model, const AttentionRates& rates,
                    const AttentionShape& shape, bool backward, FlopsPerSecond peak) {
  const AttentionPass& pass = backward ? rates.backward : rates.forward;
  const double rows = rates.rows;
  double keys = shape.causal ? (shape.sequence + rows) / 2 : shape.sequence;
  double most_keys = shape.sequence;
  if (shape.keys > 0) {
    most_keys = shape.most_keys + (shape.causal ? rows : 0);
    keys = std::min(most_keys, shape.keys + (shape.causal ? rows / 2 : 0));
  }
  const double rate = RateAt(pass, shape.head_size) * (shape.causal ? pass.causal : 1);
  const uint64_t blocks_of_head =
      (static_cast<uint64_t>(shape.sequence) + rates.rows - 1) / rates.rows;
  const double blocks = shape.sequences_times_heads * static_cast<double>(blocks_of_head);
  const Seconds unit =
      Flops((backward ? 10 : 4) * rows * shape.head_size) / (peak * (rate / model.multiprocessors));
  const double longest = most_keys + pass.setup;
  const double all = blocks / model.multiprocessors * (keys + pass.setup) + pass.tail * longest;
  return unit * std::max(all, longest);
}

}  // namespace rehearse
