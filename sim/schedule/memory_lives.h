// When each buffer of a role lives (sim/schedule/memory.h says from when to when), one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"
#include "sim/schedule/written_out.h"

namespace rehearse {

// From before the op at position `begin` until after the one at `end`.
struct LivingBuffer {
  BufferId buffer;  // as it is kept in the role
  Bytes bytes;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_use = 0;  // if it lives as long as the step: by then a first step has made it
  // The stream of the collective that a buffer of parameters or gradients comes from: frameworks
  // allocate it there (sim/schedule/caching_allocator.h). Others are allocated among the kernels.
  StreamId stream = {};
};

// Of the device, in the order in which they begin to live, those of one op in that of its
// operands; what lives as long as the step comes first. Optimizer state that waits on the host
// lives twice.
std::vector<LivingBuffer> LivingBuffers(const Role& role, const WrittenOut& all);

}  // namespace rehearse
