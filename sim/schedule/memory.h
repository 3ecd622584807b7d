// Memory of one rank, on its device and on its host, from the buffers of its role.
#pragma once

#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct MemoryUse {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;    // when optimizer + activations + buffers are largest
  Bytes activations;  // at the same moment
  Bytes buffers;      // likewise
  Bytes host;         // of the host, at its own largest

  // Of the device.
  Bytes Total() const { return parameters + gradients + optimizer + activations + buffers; }
};

// What begins or ceases to live.
struct MemoryChange {
  Bytes optimizer;
  Bytes activations;
  Bytes buffers;
  Bytes host;

  Bytes OnDevice() const { return optimizer + activations + buffers; }
};

// By op of a role without repeats: what begins to live with it, and ceases to live after it.
struct MemoryChanges {
  MemoryUse kept;  // what lives when the step begins
  std::vector<MemoryChange> gained;
  std::vector<MemoryChange> lost;
};
MemoryChanges MemoryChangesOf(const Role& role);

// Parameters, gradients and optimizer state are all counted, except state that an op copies to the
// host: it does not live until another brings it back. An activation or buffer lives from the first
// to the last op (in list order) that touches it or a view of it. A buffer that no op touches is
// not counted.
MemoryUse MemoryOf(const Role& role);
// The memory of the role with the largest total.
MemoryUse MemoryOfFullestRank(const Schedule& schedule);

}  // namespace rehearse
