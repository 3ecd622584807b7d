// What the rules of attention cores share, with and without context parallelism.
#pragma once

#include <string>
#include <vector>

#include "workloads/planner/plan.h"

namespace rehearse {

uint64_t HeadsOf(const NetworkNode& node);

// The layout with heads split, innermost, over the axis that split rows.
Layout HeadsOverContext(Layout layout, uint32_t axis);

// How much work a core does: so many passes over pairs of a query and a key, `pairs` for each token
// of Y.
struct AttentionWork {
  double passes = 1;
  double pairs = 0;
  double elements = 0;  // read and written once per pass
};
// With the node's attributes; groups become those of this rank, whose columns lie like Y's.
Compute MakeAttention(const Plan& plan, uint32_t node, Kernel kernel, const Tensor& y,
                      const AttentionWork& work);

// Pairs per token if a rank has whole sequences and the core is fused.
double PairsOfToken(const NetworkNode& node);

// Fused, backward computes the scores again: 2.5 times the flops of forward (FlashAttention-2).
inline constexpr double kFusedBackwardPasses = 2.5;

// Q and K are normalised by head and rotated by their positions, as far as the model does that;
// `back`: their gradients are.
void TurnHeads(Plan& plan, uint32_t node, const Tensor& x, bool back);

// context_rules.cc: the same where ranks share sequences.
void ForwardSharedAttention(Plan& plan, uint32_t node);
void BackwardSharedAttention(Plan& plan, uint32_t node, const Tensor& dy);

}  // namespace rehearse
