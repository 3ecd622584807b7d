// Kernels that follow each other and that nothing comes between: the engine plays them as one task
// (Series in sim/engine/program.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// Which ops of a role are one task: compute ops that follow each other, on one stream and in the
// list, if nothing waits for any but the last and none but the first waits for other streams.
struct KernelRuns {
  // By place: how many ops from there to the end of its run.
  std::vector<uint32_t> length;
  std::vector<bool> waits;  // by place: for another stream
  size_t count = 0;         // of all copies
};

// Runs of single ops, unless they may be `series`. What ops name must exist.
KernelRuns FindRuns(const Role& role, bool series);

}  // namespace rehearse
