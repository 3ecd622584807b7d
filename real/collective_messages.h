// The messages of one member of a collective, step by step: collectives/steps.h, for one group on the CPU.
//
// In each step a member sends and receives; it begins a step when its messages of earlier steps are done.
// Chunks are counted as collectives/steps.h says.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule.h"

namespace rehearse {

struct StepMessage {
  uint32_t step = 0;
  bool sends = false;            // else it receives
  uint32_t peer = 0;             // member of the group
  bool reduces = false;          // what is received is added to (or compared with) what is there
  std::vector<uint32_t> chunks;  // in the own space
};

struct StepMessages {
  uint32_t chunks = 0;                // of a member's space
  std::vector<StepMessage> messages;  // by step; in one step as they are to be sent or received
};

StepMessages MessagesOf(const Collective& collective, uint32_t size, uint32_t member);

}  // namespace rehearse
