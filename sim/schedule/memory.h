// Device memory of one rank, from the buffers of its role.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

struct MemoryUse {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // when activations + buffers are largest
  Bytes buffers;      // at the same moment

  Bytes Total() const { return parameters + gradients + optimizer + activations + buffers; }
};

// Parameters, gradients and optimizer state are all counted; an activation or buffer lives from the
// first to the last op (in list order) that touches it or a view of it. A buffer that no op touches
// is not counted.
MemoryUse MemoryOf(const Role& role);
// The memory of the role with the largest total.
MemoryUse MemoryOfFullestRank(const Schedule& schedule);

}  // namespace rehearse
