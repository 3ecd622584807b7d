// What a kernel of an attention core says of itself in its attributes (sim/schedule/kernel.h), and
// how many pairs of a query and a key it looks at.
//
// Pairs are areas, as flops of attention are counted everywhere: a causal mask over s tokens leaves
// s²/2, a window of w of them s·w - w²/2.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/sequence_order.h"

namespace rehearse {

// Positions in the attributes of Kernel::kAttention and kAttentionPart; from kWindow on they may be
// missing, from kParts on kAttention has none, or those
// of whole sequences.
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
  kAttentionValueSize,  // of kAttention only; missing: as the heads'
};

struct AttentionPart {
  double sequence = 0;
  bool causal = false;
  double window = 0;  // tokens that a query sees, itself the last; 0: all before it
  uint64_t parts = 1;
  bool balanced = false;
  // Keys are those of the rank so many before the one of the queries, around; -1: all ranks'.
  int64_t step = -1;

  double Length() const { return sequence / static_cast<double>(parts); }  // queries a rank
};

// Of a core with at least those attributes that are never missing.
AttentionPart PartOf(const std::vector<double>& attributes);

// The mean size of the heads' keys and values over that of the values: by which flops of a core are
// more than those of its result's columns.
double WidthOfCore(const std::vector<double>& attributes);

// Of one sequence and head, on the rank that has most.
double MostPairs(const AttentionPart& part);

}  // namespace rehearse
