// The simulator: plays a Program on the event queue and returns its Timeline.
//
// Events are ordered by (time, sequence); all events of one instant are one batch, followed by one
// re-solve of the rates that the batch can have changed (max-min fair, see sim/engine/max_min.h). A
// flow's end is rounded once to the clock. What takes no time (joins, empty delays, steps without
// latency and bytes) cascades within its instant. Since rates do not depend on the order of flows,
// the result does not depend on the order within an instant either. Deterministic; single-threaded;
// two simulations may run at once.
// The bytes of a link are the sum over the flows of bytes·steps·multiplicity, exactly (of what they
// moved over that link, where they have alternatives).
// In debug builds every instant is checked: bytes, capacities, causality, and that each flow is
// held back by a full link.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/progress.h"
#include "sim/engine/program.h"
#include "sim/engine/timeline.h"
#include "sim/packets/packet_play.h"

namespace rehearse {

// A step that goes on beyond the clock's range. Says which span is still under way then; whoever
// knows what its op is called adds that.
class StepTooLong : public Error {
 public:
  StepTooLong(uint32_t rank, uint32_t op, std::string why);

  uint32_t rank() const { return rank_; }  // Program::kNone where no span is known
  uint32_t op() const { return op_; }      // by position
  // "73.5 MiB over link a->b of 790 B/s", the slowest of its links; "" if it is not a transfer.
  const std::string& why() const { return why_; }

 private:
  uint32_t rank_;
  uint32_t op_;
  std::string why_;
};

// What an observer is told is going on.
inline constexpr const char* kSimulating = "simulating";

struct SimulationOptions {
  bool record_link_loads = false;   // Timeline::links[].loads
  bool record_bottlenecks = false;  // Simulation::bottlenecks
  bool record_tasks = false;        // Simulation::tasks
  // Jump over steady states (sim/engine/step_periods.h); the result is the same. Recording loads or
  // bottlenecks plays every step.
  bool jump = true;
  // More than 0: the program stands for one in which each CopiedTasks has as many pieces more. The
  // links' bytes and the transfers are those of that one; its spans are found with the recurrence
  // (sim/engine/recurrence.h). Not together with recordings.
  uint32_t copies_left_out = 0;
  // The flows that travel as packets, beside fluid ones; null: none do. Steady states are then not
  // jumped over, no copies may be left out, links do not change, and what computes does not slow
  // these flows down.
  const PacketProgram* packets = nullptr;
  bool watch_packets = false;  // PacketReport::history
  // Otherwise Timeline::played has the spans, which refer to the program.
  bool keep_spans = true;
  // Told now and then how many tasks have ended; may be null.
  ProgressObserver* observer = nullptr;
};

struct SimulationStats {
  uint64_t events = 0;     // popped from the queue
  uint64_t transfers = 0;  // steps of flows that moved bytes
  uint64_t jumped = 0;     // of these, not played but jumped over
  uint64_t solves = 0;     // rate solutions, one per component of flows that share links
};

struct TaskTime {
  Time start;
  Time end;
};

// The link that held a flow back the longest (of several, the first that did).
struct Bottleneck {
  LinkId link;       // unset: the flow never moved over links
  double share = 0;  // of the time in which the flow moved, or stood still on a failed link
};

// When a state came back, and what happened since it was there before: that many copies more of
// each piece, in that time.
struct Recurrence {
  Time at;
  Time period;
  uint32_t copies = 0;
};

struct Simulation {
  Timeline timeline;
  SimulationStats stats;
  std::vector<TaskTime> tasks;          // one per task; empty unless asked for
  std::vector<Bottleneck> bottlenecks;  // one per flow; empty unless asked for
  // If copies are left out: set if their number is a multiple of the recurrence's. If it is not
  // set, the program was not played to its end, and the timeline is empty.
  std::optional<Recurrence> recurrence;
  std::optional<PacketReport> packets;  // if any travelled
};

// `ranks` goes into the timeline. Throws Error, naming the link and the flow, when a flow is stuck
// on a failed link that never recovers, and StepTooLong. Throws InternalError, saying how many and
// naming the first, when tasks remain that can never end (the schedule check rules that out for
// checked schedules).
Simulation Simulate(const Program& program, uint32_t ranks, const SimulationOptions& options = {});

}  // namespace rehearse
