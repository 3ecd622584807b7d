// What a rank's memory holds before its first step, and before every step.
#pragma once

#include <cstdint>

#include "real/backends/backend.h"
#include "real/backends/rank_plan.h"

namespace rehearse {

// Parameters and inputs follow from their position in the global arrays (real/kernels/numbers.h),
// master weights are the parameters that they belong to, moments are zero. Everything else is NaN
// if `poison`, so that using it shows, and otherwise zero. Inputs are activations that some op
// reads and none writes. Throws Error if a region does not fit its buffer or an input has none.
void WriteInitialState(const RankPlan& plan, uint64_t seed, bool poison, Backend& backend);

// Gradients begin each step at zero; whatever else is left from the last step is poisoned if asked
// for.
void PrepareStep(const RankPlan& plan, bool poison, Backend& backend);

}  // namespace rehearse
