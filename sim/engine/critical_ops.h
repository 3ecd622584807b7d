// The critical path in terms of ops: which op of which rank the step waited for, from start to end,
// and how much time the others had to spare (sim/engine/critical_path.h says how both are defined).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/ops_of_tasks.h"
#include "sim/engine/program.h"
#include "sim/engine/simulate.h"

namespace rehearse {

// The step waited for op `op` of `rank` from `begin` to `end`.
struct PathSegment {
  uint32_t rank = 0;
  uint32_t op = 0;
  Time begin;
  Time end;
};

struct CriticalOps {
  std::vector<PathSegment> path;  // without gaps from 0 to the end of the step
  std::vector<Time> slack;        // one per span of the program
};

// Of the ranks in a collective on the path, the one where the path goes on is named. `times` are
// Simulation::tasks of the program.
CriticalOps FindCriticalOps(const Program& program, const std::vector<TaskTime>& times,
                            const OpsOfTasks& ops);
// Only the path, which is found much sooner.
std::vector<PathSegment> FindPathOfOps(const Program& program, const std::vector<TaskTime>& times,
                                       const OpsOfTasks& ops);

}  // namespace rehearse
