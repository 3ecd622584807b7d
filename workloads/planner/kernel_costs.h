// What element-wise work costs: bytes of memory traffic and launches of each kind of node, forward
// and backward, by the way it is run (KernelStyle). A kernel reads each of its operands once and
// writes each of its results once, unless said otherwise.
//
//   fused     bias, GELU, dropout and residual in hand-written kernels: Megatron-LM's
//             fused_bias_gelu.py and fused_bias_dropout.py; norms and SwiGLU as in Apex and
//             Transformer Engine. Q, K and V are copied separately. Backward, SwiGLU's two
//             gradients are joined by torch.cat, so that what both need is read twice; clamps and
//             biases of experts are PyTorch's own kernels (Megatron-LM, megatron/core/fusions/
//             fused_bias_swiglu.py and fused_bias_geglu.py, transformer/moe/experts.py).
//   eager     PyTorch, one kernel per operation: biases in the product's epilogue (addmm), Q, K and
//             V as views; dropout and sum separate; silu and product separate; an RMS norm as in
//             Llama's modeling_llama.py: cast, square, mean, scale, cast, gain.
//   compiled  what torch.compile (Inductor) makes of a layer: chains of element-wise work and the
//             reductions after them are one kernel, masks are made again from their seed.
//
// PyTorch's kernels whose operands are broadcast or strided compute where each element lies, which
// takes longer than to move it (`strided`; DeviceSpec::strided_element, topology/devices/device.h).
//
// Backends run the same kernels whatever is said here.
#pragma once

#include <cstdint>

#include "workloads/networks/training.h"

namespace rehearse {

struct KernelCost {
  double bytes = 0;
  uint32_t kernels = 1;
  double strided = 0;  // elements and bytes of kernels with broadcast or strided operands
  double strided_bytes = 0;
};

// Counts are of elements on this rank; `element` is the size of one.
struct ElementwiseCosts {
  KernelStyle style = KernelStyle::kFused;
  double element = 2;

  // X + bias on so many elements, split into `pieces` arrays; 0: the kernel before or after adds
  // it.
  KernelCost Bias(double elements, uint32_t pieces) const;
  KernelCost BiasBackward(double elements, uint32_t pieces) const;
  KernelCost BiasGelu(double elements) const;
  KernelCost BiasGeluBackward(double elements) const;
  // With so many results. `weighs`: they are multiplied by routers' weights, whose gradients are
  // found too.
  KernelCost SwiGlu(double results) const;
  KernelCost SwiGluBackward(double results, bool weighs) const;
  // As part of the products before and after it, which write and read its operands.
  KernelCost SwiGluInProduct(double results) const { return {results * element, 0}; }
  KernelCost SwiGluInProductBackward(double results) const { return {3 * results * element, 0}; }
  // Limits both of SwiGLU's operands (gpt-oss), of so many results.
  KernelCost Clamp(double results) const;
  KernelCost ClampBackward(double results) const;
  // Adds each expert's bias, times the routers' weights in fp32, to its rows.
  KernelCost ExpertBias(double elements, uint32_t experts) const;
  KernelCost ExpertBiasBackward(double elements, uint32_t experts) const;
  KernelCost SquaredRelu(double elements) const;
  KernelCost SquaredReluBackward(double elements) const;
  KernelCost Dropout(double elements) const;  // and backward
  KernelCost Residual(double elements) const;
  KernelCost ResidualBackward(double elements) const;
  // `follows_sum`: its input is what a sum in the same layer writes.
  KernelCost Norm(double elements, bool is_rms, bool follows_sum) const;
  // `adds`: adds to the gradient that went round the norm. `is_frozen`: without those of gain and
  // bias.
  KernelCost NormBackward(double elements, bool is_rms, bool adds, bool is_frozen = false) const;
  // Rotary position embedding of so many elements of Q and K. `scaled`: sines and cosines are, too
  // (YaRN), which Transformer Engine's kernel does not, so that Megatron-LM runs PyTorch's instead.
  KernelCost Rotary(double elements, bool scaled) const;
  KernelCost RotaryBackward(double elements, bool scaled) const;
};

// The loss from logits: finding the maxima, exponentiating and summing, and backward.
struct LossCosts {
  KernelCost maximum;
  KernelCost exponentials;
  KernelCost backward;
};
// In fp32 with copies of the logits (unless they are fp32 themselves), or fused: logits are read
// twice, then once more and overwritten by their gradient.
LossCosts CostsOfCrossEntropy(const Training& training, double elements, double element);

// The rows of tokens, for the experts that they go to and back, from so many elements of tokens and
// of what is sent: a token is sent to several experts.
struct PermutationCosts {
  KernelCost permute;
  KernelCost permute_backward;
  KernelCost combine;
  KernelCost combine_backward;
};
// Fused: each row is read once and written once, sums of a token's rows are made on the way. Else
// PyTorch's kernels, as eager mode has them, too (Megatron-LM, megatron/core/transformer/moe/
// moe_utils.py): rows are picked by an index that is made first, and added to zeros one by one.
// Routers' weights are part of SwiGLU where kernels are fused by hand (Megatron-LM since 2025), of
// the combination elsewhere.
PermutationCosts CostsOfPermutation(const Training& training, double tokens, double sent,
                                    double element);
// What comes from several sources, by expert. `padded`: all pieces are equally long, so that
// PyTorch swaps two dimensions; else it joins pieces.
KernelCost CostOfOrder(const Training& training, double elements, double element, bool padded);

// The loss once more, forward only, by PyTorch's own kernels.
KernelCost CostOfMetric(double elements, double element);

// Adam of so many parameters in so many arrays, whose gradients have `gradient_bytes` in all: norm,
// clipping, and the update of a state of so many bytes and of parameters of `parameter_bytes` each.
struct OptimizerCosts {
  KernelCost norm;
  KernelCost update;
};
OptimizerCosts CostsOfAdam(const Training& training, double elements, uint32_t arrays,
                           double gradient_bytes, double state_bytes, double parameter_bytes);

// LAMB of so many parameters, in passes over all of them (workloads/planner/optimizer_update.h);
// `weight` is what it updates of each, `parameter` what it writes beside that.
struct LambSizes {
  double elements = 0;
  double gradient_bytes = 0;
  double weight = 0;
  double parameter = 0;
};
struct LambCosts {
  KernelCost moments;
  KernelCost norms;
  KernelCost step;
};
LambCosts CostsOfLamb(const LambSizes& sizes);

}  // namespace rehearse
