// What attention cores reached, by implementation: TFLOP/s, 16 bits. With a causal mask, half of
// the square is counted; backward counts as 2.5 times forward.
#pragma once

#include <cstdint>

#include "sim/schedule/schedule.h"

namespace rehearse {

enum class MeasuredPass : uint8_t { kForward, kBackward, kBoth };

struct MeasuredAttention {
  const char* device;
  AttentionKernel kernel;
  MeasuredPass pass;
  bool causal;
  uint32_t head_size;
  uint32_t heads;
  uint32_t sequences;
  uint64_t sequence;
  double teraflops;
};

using By = AttentionKernel;
using Of = MeasuredPass;
// clang-format off
inline constexpr MeasuredAttention kMeasuredAttentions[] = {
    // Dao-AILab/flash-attention 0251105a, assets/flash2_a100_fwd_bwd_benchmark.png.
    {"a100-80g", By::kFlash2, Of::kBoth, false, 64, 32, 32, 512, 132},
    {"a100-80g", By::kFlash2, Of::kBoth, false, 64, 32, 4, 4096, 171},
    {"a100-80g", By::kFlash2, Of::kBoth, false, 128, 16, 8, 2048, 187},
    {"a100-80g", By::kFlash2, Of::kBoth, false, 128, 16, 1, 16384, 203},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 64, 32, 32, 512, 88},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 64, 32, 8, 2048, 140},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 64, 32, 1, 16384, 171},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 128, 16, 32, 512, 99},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 128, 16, 8, 2048, 155},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 128, 16, 4, 4096, 173},
    {"a100-80g", By::kFlash2, Of::kBoth, true, 128, 16, 1, 16384, 189},
    // triton-lang/triton #1917.
    {"a100-80g", By::kFlash1, Of::kForward, true, 64, 48, 4, 1024, 86.9},
    {"a100-80g", By::kFlash1, Of::kForward, true, 64, 48, 4, 4096, 125.6},
    {"a100-80g", By::kFlash1, Of::kForward, false, 64, 48, 4, 2048, 136.6},
    {"a100-80g", By::kFlash1, Of::kBackward, true, 64, 48, 4, 1024, 49.4},
    {"a100-80g", By::kFlash1, Of::kBackward, true, 64, 48, 4, 4096, 73.8},
    {"a100-80g", By::kFlash1, Of::kBackward, false, 64, 48, 4, 2048, 84.2},
    // The same repository, assets/flash2_h100_fwd_bwd_benchmark.png: not fitted.
    {"h100", By::kFlash2, Of::kBoth, true, 64, 32, 8, 2048, 232},
    {"h100", By::kFlash2, Of::kBoth, true, 64, 32, 1, 16384, 284},
    {"h100", By::kFlash2, Of::kBoth, true, 128, 16, 16, 1024, 221},
    {"h100", By::kFlash2, Of::kBoth, true, 128, 16, 8, 2048, 265},
    {"h100", By::kFlash2, Of::kBoth, true, 128, 16, 4, 4096, 294},
    {"h100", By::kFlash2, Of::kBoth, false, 128, 16, 2, 8192, 335},
    {"h100", By::kFlash2, Of::kBoth, false, 64, 32, 16, 1024, 254},
    // arXiv 2407.08608 (FlashAttention-3), forward and backward figures.
    {"h100", By::kFlash3, Of::kForward, true, 128, 16, 16, 1024, 423},
    {"h100", By::kFlash3, Of::kForward, true, 128, 16, 4, 4096, 579},
    {"h100", By::kFlash3, Of::kForward, true, 256, 8, 1, 16384, 642},
    {"h100", By::kFlash3, Of::kForward, false, 64, 32, 8, 2048, 460},
    {"h100", By::kFlash3, Of::kBackward, false, 128, 16, 8, 2048, 501},
    {"h100", By::kCudnn, Of::kForward, true, 128, 16, 8, 2048, 484},
    {"h100", By::kCudnn, Of::kForward, true, 128, 16, 2, 8192, 529},
    {"h100", By::kCudnn, Of::kForward, false, 64, 32, 16, 1024, 373},
    {"h100", By::kCudnn, Of::kBackward, false, 128, 16, 4, 4096, 499},
    // MooreThreads/SimuMax 4dcaae5.
    {"b200", By::kCudnn, Of::kForward, true, 128, 64, 1, 4096, 980},
    {"b200", By::kCudnn, Of::kForward, true, 128, 16, 1, 4096, 653},
    {"b200", By::kCudnn, Of::kBackward, true, 128, 64, 1, 4096, 821},
    {"b200", By::kCudnn, Of::kBackward, true, 128, 16, 1, 4096, 842},
};
// clang-format on

}  // namespace rehearse
