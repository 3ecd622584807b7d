// What a kernel of an attention core says about itself in its attributes (sim/schedule/kernel.h),
// and how many pairs of a query and a key it looks at.
//
// Pairs are areas, as flops of attention are counted everywhere: a causal mask over s tokens leaves
// s²/2, a window of w of them s·w - w²/2.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/sequence_order.h"

namespace rehearse {

// Positions in the attributes of Kernel::kAttention and kAttentionPart; those from kWindow on may
// be missing. From kParts on, kAttention has none, or those of whole sequences.
enum AttentionAttribute : uint8_t {
  kAttentionSequence,
  kAttentionGroups,
  kAttentionHeadsOfGroup,
  kAttentionHeadSize,
  kAttentionCausal,
  kAttentionWindow,
  kAttentionParts,
  kAttentionBalanced,
  kAttentionStep,
  kAttentionValueSize,  // of kAttention only; if missing, as the heads'
};

struct AttentionPart {
  double sequence = 0;
  bool causal = false;
  double window = 0;  // tokens that a query sees, the last being itself; 0: all before it
  uint64_t parts = 1;
  bool balanced = false;
  // Keys are those of the rank this many before that of the queries, cyclically; -1: of all ranks.
  int64_t step = -1;

  double Length() const { return sequence / static_cast<double>(parts); }  // queries per rank
};

// The part of a core that has at least the attributes that are never missing.
AttentionPart PartOf(const std::vector<double>& attributes);

// The mean size of the heads' keys and values, over that of the values: how many times the flops of
// its result's columns a core takes.
double WidthOfCore(const std::vector<double>& attributes);

// For one sequence and head, on the rank that has most.
double MostPairs(const AttentionPart& part);

}  // namespace rehearse
