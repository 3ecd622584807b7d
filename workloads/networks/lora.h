// Low-rank adapters (LoRA: Hu et al. 2021, arXiv 2106.09685): the model is frozen, and beside a
// matrix W of k×n there are two small ones that are trained,
//
//   y = x·W + (x·A)·B     A: k×rank, B: rank×n
//
// W has no gradient and no optimizer's state, and neither have embedding, output layer, norms and
// biases; gradients still pass through all of them. Q, K and V are one product here, and so are
// gate and up: each of the two has one pair of adapters, where others may have one for each part.
// The factor alpha / rank is part of the sum's kernel, dropout of x is left out.
//
// Where columns of a first product are split over ranks, A is on all of them and B is split; where
// rows of a second one are, A is split and B on all of them.
#pragma once

#include <cstdint>

#include "sim/base/json_fields.h"

namespace rehearse {

struct LoraTargets {
  bool qkv = false;
  bool projection = false;
  bool up = false;
  bool down = false;

  bool Any() const { return qkv || projection || up || down; }
};

struct LoraAdapters {
  uint64_t rank = 0;
  LoraTargets on = {true, true, true, true};
};

// The shape of "lora" in a decoder, and its members.
const Fields<LoraAdapters>& LoraFields();
LoraAdapters ReadLora(const JsonReader& object);

}  // namespace rehearse
