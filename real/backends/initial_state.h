// What a rank's memory holds before its first step, and before every one.
#pragma once

#include <cstdint>

#include "real/backends/backend.h"
#include "real/backends/rank_plan.h"

namespace rehearse {

// Parameters and inputs by their position in the global arrays (real/kernels/numbers.h), master
// weights as the parameters that they belong to, moments zero; everything else a number that shows
// itself (NaN) where `poison`, else zero. Inputs are activations that some op reads and none
// writes. Throws Error where a region does not fit its buffer or an input has none.
void WriteInitialState(const RankPlan& plan, uint64_t seed, bool poison, Backend& backend);

// Gradients begin each step at zero; what else was left from the last step is
// poisoned if asked for.
void PrepareStep(const RankPlan& plan, bool poison, Backend& backend);

}  // namespace rehearse
