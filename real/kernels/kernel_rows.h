// The functions behind the table in kernels.cc; each is described in sim/schedule/kernel.h. They
// are defined in kernels_*.cc and instantiated there for float and double.
#pragma once

#include "real/kernels/kernel_call.h"

namespace rehearse::kernels {

// kernels_product.cc
template <typename T>
void Product(const KernelCall<T>& call);
// kernels_move.cc
template <typename T>
void Copy(const KernelCall<T>& call);
template <typename T>
void Accumulate(const KernelCall<T>& call);
template <typename T>
void Add(const KernelCall<T>& call);
template <typename T>
void Unstack(const KernelCall<T>& call);
template <typename T>
void Stack(const KernelCall<T>& call);
template <typename T>
void Embedding(const KernelCall<T>& call);
template <typename T>
void EmbeddingBackward(const KernelCall<T>& call);
// kernels_activation.cc
template <typename T>
void Bias(const KernelCall<T>& call);
template <typename T>
void BiasBackward(const KernelCall<T>& call);
template <typename T>
void BiasGelu(const KernelCall<T>& call);
template <typename T>
void BiasGeluBackward(const KernelCall<T>& call);
template <typename T>
void SwiGlu(const KernelCall<T>& call);
template <typename T>
void SwiGluBackward(const KernelCall<T>& call);
template <typename T>
void SquaredRelu(const KernelCall<T>& call);
template <typename T>
void SquaredReluBackward(const KernelCall<T>& call);
template <typename T>
void Residual(const KernelCall<T>& call);
template <typename T>
void Dropout(const KernelCall<T>& call);
template <typename T>
void DropoutBackward(const KernelCall<T>& call);
template <typename T>
void Relu(const KernelCall<T>& call);
template <typename T>
void ReluBackward(const KernelCall<T>& call);
// kernels_latent.cc
template <typename T>
void JoinHeads(const KernelCall<T>& call);
template <typename T>
void SplitHeads(const KernelCall<T>& call);
// kernels_state_space.cc
template <typename T>
void StateConvolution(const KernelCall<T>& call);
template <typename T>
void StateConvolutionBackward(const KernelCall<T>& call);
template <typename T>
void StateChunks(const KernelCall<T>& call);
template <typename T>
void StateScan(const KernelCall<T>& call);
template <typename T>
void StateScanBackward(const KernelCall<T>& call);
template <typename T>
void StateNorm(const KernelCall<T>& call);
template <typename T>
void StateNormBackward(const KernelCall<T>& call);
// kernels_norm.cc
template <typename T>
void NormStatistics(const KernelCall<T>& call);
template <typename T>
void Norm(const KernelCall<T>& call);
template <typename T>
void NormBackwardStatistics(const KernelCall<T>& call);
template <typename T>
void NormBackward(const KernelCall<T>& call);
template <typename T>
void NormBackwardAdd(const KernelCall<T>& call);
template <typename T>
void RmsNormStatistics(const KernelCall<T>& call);
template <typename T>
void RmsNorm(const KernelCall<T>& call);
template <typename T>
void RmsNormBackwardStatistics(const KernelCall<T>& call);
template <typename T>
void RmsNormBackward(const KernelCall<T>& call);
template <typename T>
void RmsNormBackwardAdd(const KernelCall<T>& call);
// kernels_attention.cc
template <typename T>
void Attention(const KernelCall<T>& call);
template <typename T>
void AttentionBackward(const KernelCall<T>& call);
// kernels_attention_part.cc
template <typename T>
void TakeKeys(const KernelCall<T>& call);
template <typename T>
void PutKeys(const KernelCall<T>& call);
template <typename T>
void AttentionPart(const KernelCall<T>& call);
template <typename T>
void AttentionPartBackward(const KernelCall<T>& call);
template <typename T>
void AttentionMerge(const KernelCall<T>& call);
template <typename T>
void OrderSequences(const KernelCall<T>& call);
// kernels_experts.cc
template <typename T>
void Route(const KernelCall<T>& call);
template <typename T>
void RouteBackward(const KernelCall<T>& call);
template <typename T>
void Permute(const KernelCall<T>& call);
template <typename T>
void PermuteBackward(const KernelCall<T>& call);
template <typename T>
void Combine(const KernelCall<T>& call);
template <typename T>
void CombineBackward(const KernelCall<T>& call);
template <typename T>
void OrderChunks(const KernelCall<T>& call);
template <typename T>
void GroupedGemm(const KernelCall<T>& call);
// kernels_loss.cc
template <typename T>
void Maximum(const KernelCall<T>& call);
template <typename T>
void Exponentials(const KernelCall<T>& call);
template <typename T>
void CrossEntropy(const KernelCall<T>& call);
template <typename T>
void CrossEntropyBackward(const KernelCall<T>& call);
template <typename T>
void SquaredError(const KernelCall<T>& call);
// kernels_image.cc
template <typename T>
void Im2Col(const KernelCall<T>& call);
template <typename T>
void Col2Im(const KernelCall<T>& call);
template <typename T>
void MaxPool(const KernelCall<T>& call);
template <typename T>
void MaxPoolBackward(const KernelCall<T>& call);
template <typename T>
void Upsample(const KernelCall<T>& call);
template <typename T>
void UpsampleBackward(const KernelCall<T>& call);
template <typename T>
void Flatten(const KernelCall<T>& call);
template <typename T>
void FlattenBackward(const KernelCall<T>& call);
template <typename T>
void Concatenate(const KernelCall<T>& call);
template <typename T>
void Separate(const KernelCall<T>& call);
template <typename T>
void Modulate(const KernelCall<T>& call);
template <typename T>
void ModulateBackward(const KernelCall<T>& call);
// kernels_group_norm.cc
template <typename T>
void GroupNorm(const KernelCall<T>& call);
template <typename T>
void GroupNormBackward(const KernelCall<T>& call);
// kernels_optimizer.cc
template <typename T>
void SquaredNorm(const KernelCall<T>& call);
template <typename T>
void Adam(const KernelCall<T>& call);
template <typename T>
void Momentum(const KernelCall<T>& call);
template <typename T>
void LambMoments(const KernelCall<T>& call);
template <typename T>
void LambNorms(const KernelCall<T>& call);
template <typename T>
void LambStep(const KernelCall<T>& call);
template <typename T>
void MuonDirections(const KernelCall<T>& call);
template <typename T>
void Normalize(const KernelCall<T>& call);
template <typename T>
void Linear(const KernelCall<T>& call);
template <typename T>
void MuonStep(const KernelCall<T>& call);

}  // namespace rehearse::kernels

// Goes at the end of a file that defines some of them. A function's name cannot be in parentheses
// here.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define REHEARSE_INSTANTIATE(Function)                          \
  template void Function<float>(const KernelCall<float>& call); \
  template void Function<double>(const KernelCall<double>& call)
// NOLINTEND(bugprone-macro-parentheses)
