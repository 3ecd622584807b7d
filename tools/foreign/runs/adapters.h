// Low-rank adapters (LoRA) as frameworks that fine-tune name them, as a decoder's "lora".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

struct NamedAdapters {
  uint64_t rank = 8;
  // "q_proj", "linear_qkv", "w1"; all that have adapters here, if it is empty.
  std::vector<std::string> on = {};
  bool is_quantised = false;  // the frozen model has 4 or 8 bits
  Origin from = {};
};

// Into a draft that has its model. Remarks on what is played otherwise: one pair of adapters for
// Q, K and V, none for experts, names that are not known, a model in fewer bits. Throws Error at
// `from` where none of the names is of a product that has adapters here.
void SetAdapters(const NamedAdapters& adapters, ScenarioDraft* draft);

}  // namespace rehearse
