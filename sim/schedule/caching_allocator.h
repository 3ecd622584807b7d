// What PyTorch's caching allocator takes of a device for the buffers of a role: the step's
// allocations, in the order of its ops, played over its rules (pytorch/pytorch,
// c10/cuda/CUDACachingAllocator.cpp):
//
//   sizes      multiples of 512 bytes
//   segments   of 2 MiB for arrays of up to 1 MiB; of 20 MiB for those of up to 10 MiB; otherwise
//              the array's size in multiples of 2 MiB
//   blocks     the smallest free one that is large enough; what is left of it becomes a block of
//              its own if it is 512 bytes or more among small arrays, more than 1 MiB among others;
//              neighbours that are free are joined
//   full       a new segment that finds no room first gives all segments back that are free
//
// With expandable segments there is one for each of both kinds, which grows at its end by multiples
// of 2 MiB or 20 MiB; free blocks of any size are split, and their pages are given back only when
// the device is full.
//
// Three steps are played. Parameters and gradients are allocated first; the optimizer's state, two
// arrays a parameter, where the first step updates them (pytorch/pytorch, torch/optim/adam.py:
// _init_group makes it lazily), among what that has freed.
//
// Each stream has segments of its own. What is gathered of parameters and what is left of gradients
// that are reduced in shares is allocated on the streams of these collectives, as PyTorch's FSDP
// does (pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:
// all_gather_copy_in_stream, reduce_scatter_stream) and DeepSpeed (runtime/zero,
// partitioned_param_coordinator.py and stage3.py); everything else on that of the kernels. Blocks
// that wait for another stream's kernels are not modelled.
#pragma once

#include <optional>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct AllocatorRules {
  bool expandable = false;         // expandable_segments:True
  std::optional<Bytes> room = {};  // what the device has for it; nothing: as much as it asks for
};

struct AllocatedMemory {
  Bytes active;      // in blocks that are in use, at its largest
  Bytes reserved;    // in segments, at its largest
  bool fits = true;  // within the room

  // What lies idle in segments and between blocks.
  Bytes Idle() const { return reserved - active; }
};

AllocatedMemory PlayAllocations(const Role& role, const AllocatorRules& rules);

}  // namespace rehearse
