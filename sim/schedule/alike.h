// Whether equal parts of a step may stand for each other, so that not all of them are played.
//
// Whatever treats layers by their number, or micro-batches by theirs, says so in its own file, with
// a function AlikeUnder(). Who leaves out layers (scenarios/playing/few_layers.h) or micro-batches
// (scenarios/playing/few_copies.h) asks the whole scenario (scenarios/playing/alike_parts.h), and
// knows nothing of what it consists of.
#pragma once

namespace rehearse {

struct Alike {
  bool layers = true;
  bool micro_batches = true;

  // Under both.
  friend Alike operator&(Alike a, Alike b) {
    return {a.layers && b.layers, a.micro_batches && b.micro_batches};
  }
};

}  // namespace rehearse
