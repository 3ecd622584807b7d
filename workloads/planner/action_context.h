// What an action that is being planned asks of the parameters, beside what its nodes ask.
#pragma once

#include <cstdint>

#include "workloads/planner/stages.h"

namespace rehearse {

struct ActionContext {
  const Stage* stage = nullptr;
  uint32_t micro_batch = 0;
  uint32_t prefetch_end = 0;          // matrices before this one may be gathered ahead
  bool goes_backward = false;         // layers come last to first
  bool puts_off_weights = false;      // gradients of matrices come in an action of their own
  bool makes_last_gradients = false;  // of the stage, which may be summed beside the action
  bool is_last_chunk = true;          // of the micro-batch to use what is gathered
};

}  // namespace rehearse
