#include "real/kernels/kernels.h"

#include <utility>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse {
namespace kernels {
namespace {

template <typename T>
constexpr std::pair<Kernel, KernelFunction<T>> kRows[] = {
    {Kernel::kGemm, Product<T>},
    {Kernel::kCopy, Copy<T>},
    {Kernel::kAccumulate, Accumulate<T>},
    {Kernel::kAdd, Add<T>},
    {Kernel::kUnstack, Unstack<T>},
    {Kernel::kStack, Stack<T>},
    {Kernel::kEmbedding, Embedding<T>},
    {Kernel::kEmbeddingBackward, EmbeddingBackward<T>},
    {Kernel::kBias, Bias<T>},
    {Kernel::kBiasBackward, BiasBackward<T>},
    {Kernel::kBiasGelu, BiasGelu<T>},
    {Kernel::kBiasGeluBackward, BiasGeluBackward<T>},
    {Kernel::kSwiGlu, SwiGlu<T>},
    {Kernel::kSwiGluBackward, SwiGluBackward<T>},
    {Kernel::kSquaredRelu, SquaredRelu<T>},
    {Kernel::kSquaredReluBackward, SquaredReluBackward<T>},
    {Kernel::kNormStatistics, NormStatistics<T>},
    {Kernel::kNorm, Norm<T>},
    {Kernel::kNormBackwardStatistics, NormBackwardStatistics<T>},
    {Kernel::kNormBackward, NormBackward<T>},
    {Kernel::kNormBackwardAdd, NormBackwardAdd<T>},
    {Kernel::kRmsNormStatistics, RmsNormStatistics<T>},
    {Kernel::kRmsNorm, RmsNorm<T>},
    {Kernel::kRmsNormBackwardStatistics, RmsNormBackwardStatistics<T>},
    {Kernel::kRmsNormBackward, RmsNormBackward<T>},
    {Kernel::kRmsNormBackwardAdd, RmsNormBackwardAdd<T>},
    {Kernel::kAttention, Attention<T>},
    {Kernel::kAttentionBackward, AttentionBackward<T>},
    {Kernel::kTakeKeys, TakeKeys<T>},
    {Kernel::kPutKeys, PutKeys<T>},
    {Kernel::kAttentionPart, AttentionPart<T>},
    {Kernel::kAttentionPartBackward, AttentionPartBackward<T>},
    {Kernel::kAttentionMerge, AttentionMerge<T>},
    {Kernel::kOrderSequences, OrderSequences<T>},
    {Kernel::kJoinHeads, JoinHeads<T>},
    {Kernel::kSplitHeads, SplitHeads<T>},
    {Kernel::kStateConvolution, StateConvolution<T>},
    {Kernel::kStateConvolutionBackward, StateConvolutionBackward<T>},
    {Kernel::kStateChunks, StateChunks<T>},
    {Kernel::kStateScan, StateScan<T>},
    {Kernel::kStateScanBackward, StateScanBackward<T>},
    {Kernel::kStateNorm, StateNorm<T>},
    {Kernel::kStateNormBackward, StateNormBackward<T>},
    {Kernel::kRoute, Route<T>},
    {Kernel::kRouteBackward, RouteBackward<T>},
    {Kernel::kPermute, Permute<T>},
    {Kernel::kPermuteBackward, PermuteBackward<T>},
    {Kernel::kCombine, Combine<T>},
    {Kernel::kCombineBackward, CombineBackward<T>},
    {Kernel::kOrderChunks, OrderChunks<T>},
    {Kernel::kGroupedGemm, GroupedGemm<T>},
    {Kernel::kResidual, Residual<T>},
    {Kernel::kDropoutBackward, DropoutBackward<T>},
    {Kernel::kDropout, Dropout<T>},
    {Kernel::kMaximum, Maximum<T>},
    {Kernel::kExponentials, Exponentials<T>},
    {Kernel::kCrossEntropy, CrossEntropy<T>},
    {Kernel::kCrossEntropyBackward, CrossEntropyBackward<T>},
    {Kernel::kSquaredError, SquaredError<T>},
    {Kernel::kRelu, Relu<T>},
    {Kernel::kReluBackward, ReluBackward<T>},
    {Kernel::kIm2Col, Im2Col<T>},
    {Kernel::kCol2Im, Col2Im<T>},
    {Kernel::kMaxPool, MaxPool<T>},
    {Kernel::kMaxPoolBackward, MaxPoolBackward<T>},
    {Kernel::kUpsample, Upsample<T>},
    {Kernel::kUpsampleBackward, UpsampleBackward<T>},
    {Kernel::kFlatten, Flatten<T>},
    {Kernel::kFlattenBackward, FlattenBackward<T>},
    {Kernel::kConcatenate, Concatenate<T>},
    {Kernel::kSeparate, Separate<T>},
    {Kernel::kGroupNorm, GroupNorm<T>},
    {Kernel::kGroupNormBackward, GroupNormBackward<T>},
    {Kernel::kModulate, Modulate<T>},
    {Kernel::kModulateBackward, ModulateBackward<T>},
    {Kernel::kSquaredNorm, SquaredNorm<T>},
    {Kernel::kAdam, Adam<T>},
    {Kernel::kMomentum, Momentum<T>},
    {Kernel::kLambMoments, LambMoments<T>},
    {Kernel::kLambNorms, LambNorms<T>},
    {Kernel::kLambStep, LambStep<T>},
    {Kernel::kMuonDirections, MuonDirections<T>},
    {Kernel::kNormalize, Normalize<T>},
    {Kernel::kLinear, Linear<T>},
    {Kernel::kMuonStep, MuonStep<T>},
};

}  // namespace
}  // namespace kernels

template <typename T>
KernelFunction<T> FindKernel(Kernel kernel) {
  for (const auto& [name, function] : kernels::kRows<T>) {
    if (name == kernel) return function;
  }
  CHECK(kernel == Kernel::kNone);
  return nullptr;
}

template KernelFunction<float> FindKernel<float>(Kernel kernel);
template KernelFunction<double> FindKernel<double>(Kernel kernel);

}  // namespace rehearse
