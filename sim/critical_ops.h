// The critical path in terms of ops: which op of which rank the step waited for, from its begin to
// its end, and how much time the others had to spare (sim/critical_path.h says how both are
// defined).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program.h"
#include "sim/simulate.h"

namespace rehearse {

// Which ops a task works for: those whose end is the first that follows it along its first
// successors. A compute op's delay works for that op, a flow for the collective on all its ranks.
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

// The step waited for op `op` of `rank` from `begin` to `end`.
struct PathSegment {
  uint32_t rank = 0;
  uint32_t op = 0;
  Time begin;
  Time end;
};

struct CriticalOps {
  std::vector<PathSegment> path;  // without gaps from 0 to the end of the step
  std::vector<Time> slack;        // one a span of the program
};

// Of ranks that take part in a collective of the path, the one that the path goes on with is named.
// `times` are Simulation::tasks of the program.
CriticalOps FindCriticalOps(const Program& program, const std::vector<TaskTime>& times,
                            const OpsOfTasks& ops);

}  // namespace rehearse
