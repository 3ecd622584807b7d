// How a forward pass and the backward pass of another micro-batch go side by side on one rank: both
// are cut into parts, and a table says in which order the parts are issued.
//
// A layer with experts is cut as DualPipe cuts it (DeepSeek-V3, arXiv 2412.19437, section 3.2.1 and
// Fig. 4), each part named after the pass that it belongs to:
//
//   F.attention   from the sums of the tokens' results of the layer before to the router's choices
//   F.dispatch    tokens' rows are put in order and sent to the experts
//   F.experts     first half of the shared expert; the experts, on what has arrived
//   F.combine     results are sent back; second half of the shared expert
//   I.combine     the gradients of inputs, in the opposite order: what F.combine received is sent
//   I.experts     to the experts; theirs and that of the shared expert's second half;
//   I.dispatch    sent back; that of the shared expert's first half;
//   I.attention   sums of tokens' rows, and all before the router
//   W.experts     the gradients of matrices of which I.* has made the operands so far
//   W.attention
//
// A layer without experts has an attention and an "experts" part, its MLP; what comes before the
// first layer or after the last one belongs to "attention". What is sent travels until a part needs
// it, beside whatever the table has in between. The table is gone through again and again: an entry
// whose part is not the next one of its pass is skipped, so that each pass begins where the table
// lets it, and is in the next layer in the next round. If it has no W.*, weights' gradients are
// made right after the inputs' ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace rehearse {

enum class PassPart : uint8_t {
  kForwardAttention,
  kForwardDispatch,
  kForwardExperts,
  kForwardCombine,
  kBackwardCombine,
  kBackwardExperts,
  kBackwardDispatch,
  kBackwardAttention,
  kExpertWeights,
  kAttentionWeights,
};
inline constexpr size_t kPassParts = 10;
const char* Name(PassPart part);  // "F.attention"
inline bool IsForward(PassPart part) { return part <= PassPart::kForwardCombine; }
inline bool IsOfWeights(PassPart part) { return part >= PassPart::kExpertWeights; }

using PairOrder = std::vector<PassPart>;
inline bool PutsWeightsApart(const PairOrder& order) {
  for (const PassPart part : order)
    if (IsOfWeights(part)) return true;
  return false;
}

struct PairOrderFacts {
  const char* name;
  const char* summary;
  const char* source;
  PairOrder order;
};
const std::vector<PairOrderFacts>& PairOrders();

// Throws Error at `place`, naming two parts, unless each part of a forward pass and of inputs'
// gradients is there once, those of a pass follow each other as its layers need them (beginning
// anywhere), and weights' gradients are both there once or not at all.
void CheckPairOrder(const PairOrder& order, const Place& place = {});

}  // namespace rehearse
