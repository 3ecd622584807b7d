// Memory of one rank, on its device and on its host, from the buffers of its role.
#pragma once

#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct MemoryUse {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // when activations + buffers are largest
  Bytes buffers;      // at the same moment
  Bytes host;         // of the host, at its own largest

  // Of the device.
  Bytes Total() const { return parameters + gradients + optimizer + activations + buffers; }
};

// Activations and buffers that begin or cease to live.
struct MemoryChange {
  Bytes activations;
  Bytes buffers;
  Bytes host;
};

// By op of a role without repeats: what begins to live with it, and ceases to live after it.
struct MemoryChanges {
  MemoryUse kept;  // parameters, gradients and optimizer state, which live all the time
  std::vector<MemoryChange> gained;
  std::vector<MemoryChange> lost;
};
MemoryChanges MemoryChangesOf(const Role& role);

// Parameters, gradients and optimizer state are all counted; an activation or buffer lives from the
// first to the last op (in list order) that touches it or a view of it. A buffer that no op touches
// is not counted.
MemoryUse MemoryOf(const Role& role);
// The memory of the role with the largest total.
MemoryUse MemoryOfFullestRank(const Schedule& schedule);

}  // namespace rehearse
