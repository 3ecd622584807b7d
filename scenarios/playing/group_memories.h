// Memories of groups (collectives/lowering/group_memory.h) for threads that play many scenarios on
// the same few machines. What a scenario comes to does not depend on which memory it gets.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "collectives/lowering/group_memory.h"
#include "scenarios/readers/scenario.h"

namespace rehearse {

// May be used from several threads.
class GroupMemories {
 public:
  // A memory for one scenario, given back at the end.
  class Taken {
   public:
    Taken(GroupMemories& all, const Scenario& scenario);
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    // Null where ways depend on a seed, on links that fail or on what else is under way.
    GroupMemory* get() const { return memory_ && memory_->IsUsable() ? memory_.get() : nullptr; }

   private:
    GroupMemories& all_;
    std::unique_ptr<GroupMemory> memory_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<GroupMemory>> idle_;  // what was used last comes last
};

}  // namespace rehearse
