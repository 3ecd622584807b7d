// The loss of a step, from what its ranks recorded.
#pragma once

#include <vector>

#include "real/kernels/kernel_call.h"
#include "real/transports/transport.h"

namespace rehearse {

// The mean over the step's tokens (or samples) of all ranks, on rank 0; 0 elsewhere. Each row
// counts once, however many ranks computed it.
double GatherLoss(Transport& transport, const std::vector<RowLoss>& own, double tokens);

// |value - reference| / |reference|; infinite if that is not a number.
double RelativeDifference(double value, double reference);

}  // namespace rehearse
