// The simulator: plays a Program on the event queue and returns its Timeline.
//
// Events are ordered by (time, sequence); all events of one instant are one batch, followed by one
// re-solve of the rates that the batch can have changed (max-min fair, see sim/max_min.h). A flow's end
// is rounded once to the clock. What takes no time (joins, empty delays, steps without latency and bytes)
// cascades within its instant. Since rates do not depend on the order of flows, the result does not
// depend on the order within an instant either. Deterministic; single-threaded; two simulations may run at
// once.
// The bytes of a link are the sum over the flows of bytes·steps·multiplicity, exactly.
#pragma once

#include <cstdint>

#include "sim/program.h"
#include "sim/timeline.h"

namespace rehearse {

struct SimulationOptions {
  bool record_link_loads = false;
};

struct SimulationStats {
  uint64_t events = 0;     // popped from the queue
  uint64_t transfers = 0;  // steps of flows that moved bytes
  uint64_t solves = 0;     // rate solutions, one a component of flows that share links
};

struct Simulation {
  Timeline timeline;
  SimulationStats stats;
};

// `ranks` goes into the timeline. Throws InternalError, saying how many and naming the first, when tasks
// remain that can never end (the schedule check rules that out for checked schedules).
Simulation Simulate(const Program& program, uint32_t ranks, const SimulationOptions& options = {});

}  // namespace rehearse
