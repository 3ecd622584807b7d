// From a Program's tasks back to the ops that they were lowered from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/program.h"

namespace rehearse {

// Which ops a task works for: those whose end is the first that follows it along its first
// successors (or the next ones, where those lead to none). A compute op's delay works for that op,
// a flow for the collective on all its ranks.
class OpsOfTasks {
 public:
  explicit OpsOfTasks(const Program& program);

  // Positions in Program::spans, ascending; none for a task that leads to no op's end.
  std::span<const uint32_t> Of(TaskId task) const;

 private:
  std::vector<uint32_t> end_;         // per task: the end that it leads to, or kNone
  std::vector<uint32_t> first_span_;  // per task: spans_ that end with it begin here
  std::vector<uint32_t> spans_;
};

}  // namespace rehearse
