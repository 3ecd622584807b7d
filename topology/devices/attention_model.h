// How long a fused attention core takes on a GPU, by implementation.
//
// A block of `rows` queries of one head goes over the keys: all s of them, or, with a causal mask,
// as many as precede its last query, (s + rows)/2 in the mean. With S multiprocessors,
// heads of d and
//   blocks  = sequences · heads · ⌈s/rows⌉
//   keys    = s, or (s + rows)/2
//   unit    = p · rows · d / (peak/S · rate(d) · causal)      of a key; p is 4 forward, 10 backward
//   cores   = unit · (blocks/S · (keys + setup) + tail · (s + setup)), at least unit · (s + setup)
//   time    = cores, but never less than bytes / (bandwidth · memory_efficiency), and launch
// `setup` is what a block costs besides its keys (loading queries, the last sums, in backward the
// sums over rows); `tail` is how long the device waits for the last blocks: long where the longest
// come last (FlashAttention-2), short where a persistent kernel begins with them (FlashAttention-3,
// cuDNN).
// Grouped queries read less and compute the same. rate(d) is given for heads of 64, 128 and
// 256, linear in between, proportional to d below, constant above.
//
// The constants and their sources are in attention_model.cc, errors in topology/OPERATORS.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr std::array<double, 3> kRatedHeadSizes = {64, 128, 256};

// One direction of an implementation.
struct AttentionPass {
  std::array<double, 3> rates = {1, 1, 1};  // of the peak, by kRatedHeadSizes
  double causal = 1;                        // share of them that a mask leaves
  double setup = 0;                         // keys
  double tail = 0;

  friend bool operator==(const AttentionPass&, const AttentionPass&) = default;
};

struct AttentionRates {
  AttentionKernel kernel = AttentionKernel::kFlash2;  // a fused one
  uint32_t rows = 128;                                // of a block
  AttentionPass forward;
  AttentionPass backward;

  friend bool operator==(const AttentionRates&, const AttentionRates&) = default;
};

struct AttentionModel {
  uint32_t multiprocessors = 1;
  Seconds launch;
  std::vector<AttentionRates> kernels;  // each once; the first is what "fused" means

  friend bool operator==(const AttentionModel&, const AttentionModel&) = default;
};

// The generations of NVIDIA's GPUs.
AttentionModel AmpereAttention(uint32_t multiprocessors);
AttentionModel HopperAttention(uint32_t multiprocessors);
AttentionModel BlackwellAttention(uint32_t multiprocessors, double forward_64, double forward_128);
AttentionModel AdaAttention(uint32_t multiprocessors);
AttentionModel VoltaAttention(uint32_t multiprocessors);
AttentionModel H20Attention();
// FlashAttention-2 reaches the same share of the best product's rate as on the A100.
AttentionModel CdnaAttention(uint32_t compute_units, double gemm_share);

// Returns null if the device has no figures for it.
const AttentionRates* FindRates(const AttentionModel& model, AttentionKernel kernel);

// What an op says about its core.
struct AttentionShape {
  double sequences_times_heads = 0;
  double sequence = 0;  // queries
  double head_size = 0;
  bool causal = false;
  // Keys that a query looks at in the mean, and those that the longest block goes over, where
  // sliding windows or other ranks' queries make them differ from what sequence and mask imply; 0
  // where they do not.
  double keys = 0;
  double most_keys = 0;
};
// The shape of a fused op that has the attributes of Kernel::kAttention or kAttentionPart; nothing
// without them. Backward counts 2.5 times the flops of forward, and a mask halves them.
std::optional<AttentionShape> ShapeOf(const Compute& compute, bool backward);

// The time of the blocks, without memory and launch.
Seconds TimeOfCores(const AttentionModel& model, const AttentionRates& rates,
                    const AttentionShape& shape, bool backward, FlopsPerSecond peak);

}  // namespace rehearse
