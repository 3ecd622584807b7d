// Which tasks determined the end of a simulated step, and how much time the others had to spare.
//
// The chain is read backwards from the task that ended last: a task starts when its last
// predecessor ends, so each was waited for by the next. Of predecessors that ended together, the
// first in the program counts; of tasks that end the step together, the last. A flow counts with
// the time that it took, whatever held it back (Simulation::bottlenecks says what did).
//
// The slack of a task is how much longer it could have taken without the step ending later, had all
// others taken the time that they did:
//   slack(t) = min(end of step - end(t),  min over successors s of slack(s) + start(s) - end(t)),
// where a flow of several steps also has at most the slack of its downstream, which waits for it
// step by step (cautiously: waits in one may make up for a late step of the other). All flows of a
// ring have the same slack.
#pragma once

#include <vector>

#include "sim/engine/program.h"
#include "sim/engine/simulate.h"

namespace rehearse {

struct CriticalPath {
  std::vector<TaskId> chain;  // from a task that starts at 0 to the last; empty without tasks
  std::vector<Time> slack;    // one per task
};

// `times` are Simulation::tasks of the program. O((tasks + edges)·log tasks).
CriticalPath FindCriticalPath(const Program& program, const std::vector<TaskTime>& times);
// Only the chain: O(tasks + edges).
std::vector<TaskId> FindCriticalChain(const Program& program, const std::vector<TaskTime>& times);

}  // namespace rehearse
