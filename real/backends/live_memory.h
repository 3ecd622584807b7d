// What a rank's arrays took while it ran: which of them lived at each op, by kind. It is counted as
// ops begin and end, and so stands beside sim/schedule/memory.h, which reckons from their list.
// Sizes are those of the schedule, whatever the rank computes in: a mask has a byte an element.
//
// An array of activations or a buffer lives from before the first op that touches it until after
// the last. With one op after the other that is what is predicted, to the byte; on several streams
// ops end in another order, and more or less may live at once.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "real/backends/rank_plan.h"
#include "sim/schedule/memory.h"

namespace rehearse {

// Of one step. Begin and End may be called by several threads.
class LiveMemory {
 public:
  explicit LiveMemory(const RankPlan& plan);

  void Begin(uint32_t op);
  void End(uint32_t op);
  // Once all ops have ended.
  const MemoryUse& peak() const { return peak_; }

 private:
  struct Array {
    BufferKind kind = BufferKind::kActivation;
    bool is_counted = true;  // not if it lies where another is
    bool on_host = false;
    Bytes bytes;
    uint32_t uses_left = 0;  // ops that will touch it
    bool lives = false;

    bool IsKept() const { return kind != BufferKind::kActivation && kind != BufferKind::kBuffer; }
  };

  // Adds what the array takes, or takes it away.
  void Count(Array& array, bool lives);

  std::vector<Array> arrays_;                   // by memory of the plan
  std::vector<std::vector<uint32_t>> touched_;  // by op, each array once
  // Optimizer state that waits on the host: by op, what leaves with it and what comes back.
  std::vector<std::vector<uint32_t>> leaves_;
  std::vector<std::vector<uint32_t>> returns_;
  std::mutex mutex_;
  MemoryUse now_;
  MemoryUse peak_;
};

}  // namespace rehearse
