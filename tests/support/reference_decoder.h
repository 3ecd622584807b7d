// One training step of a decoder as a textbook writes it: one number after another, no split
// matrices, no gradient formulas. It begins with the numbers of real/kernels/numbers.h.
#pragma once

#include <cstdint>

#include "real/execution/check.h"
#include "workloads/networks/model.h"
#include "workloads/networks/training.h"

namespace rehearse {

// Loss and gradients ("gradient of NAME", as planners name them) of the mean cross entropy over all
// tokens. `shift` is added to element (0, 0) of the parameter `shifted`, for differences.
StepNumbers ReferenceDecoderStep(const GptModel& model, const Training& training, uint64_t seed,
                                 const std::string& shifted = "", double shift = 0);

}  // namespace rehearse
