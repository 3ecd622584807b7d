// Where a flow is in its steps; plain data of the simulator (sim/engine/simulate.cc,
// sim/engine/step_periods.h).
#pragma once

#include <cstdint>

namespace rehearse {

enum class FlowPhase : uint8_t {
  kNotStarted,
  kReady,    // on the agenda: the next step may begin
  kLatency,  // an event is pending
  kMoving,   // an event is pending, unless it is stuck on a failed link
  kBlocked,  // for the upstream's step
  kDone,
};

struct FlowRun {
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t task = kNone;
  uint32_t upstream = kNone;  // flows
  uint32_t downstream = kNone;
  uint32_t steps_done = 0;
  FlowPhase phase = FlowPhase::kNotStarted;
  bool watched = false;    // StepPeriods wants to know when it has done a step
  bool set_aside = false;  // its events are in the queue of StepPeriods

  bool IsUnderWay() const { return phase != FlowPhase::kNotStarted && phase != FlowPhase::kDone; }
};

}  // namespace rehearse
