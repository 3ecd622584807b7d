// The messages of one member of a collective, step by step: collectives/algorithms/steps.h, for one
// group on the CPU.
//
// Members are in the order of their group (on one host there is no better one), the root first, in
// one part. "auto" is a ring, and pairwise exchange for all-to-all. Chunks are counted as in
// collectives/algorithms/steps.h.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct StepMessage {
  uint32_t step = 0;
  bool sends = false;  // otherwise it receives
  // Member of the group; the member itself for a copy in memory, listed as sent and as received.
  uint32_t peer = 0;
  bool reduces = false;          // what is received is added to (or compared with) what is there
  std::vector<uint32_t> chunks;  // in the member's own space
};

struct StepMessages {
  uint32_t chunks = 0;                // of a member's space
  std::vector<uint32_t> blocks;       // all-gather, reduce-scatter: whose block each chunk is of
  std::vector<StepMessage> messages;  // by step; within a step in the order of sending or receiving
};

// Throws Error for algorithms that are unknown, cannot do the kind, or need to know the machine.
StepMessages MessagesOf(const Collective& collective, uint32_t size, uint32_t member,
                        uint64_t bytes);

}  // namespace rehearse
