// Values that are kept in fewer bits between their forward pass and their way back
// (Training::keeps_narrow_activations, keeps_narrow_attention).
//
// The kernel that takes a value writes the narrow copy on the way, so that only its bytes count;
// the way back begins by widening it. Bytes of an element, with a scale in fp32 for 128:
//
//   | value                             | kept   |                                            |
//   | SwiGLU's operand                  | 1.031  | 8 bits                                     |
//   | attention's result                | 1.531  | E5M6: 12 bits (DeepSeek-V3, section 3.3.3) |
//
// A backend copies: numbers are those of the training's precision.
#pragma once

#include <cstdint>

#include "workloads/planner/plan.h"

namespace rehearse {

// Whether the node's value is kept so.
bool IsKeptNarrow(const Network& network, uint32_t node, const Training& training);

// Behind the forward pass of the node that takes it, and in front of its way back.
void KeepNarrow(Plan& plan, uint32_t node);
void WidenKept(Plan& plan, uint32_t node);

}  // namespace rehearse
