// The pipeline: Scenario -> Schedule -> Program -> Timeline -> Result, as one readable function.
#pragma once

#include "collectives/lowering/lower.h"
#include "scenarios/readers/scenario.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline.h"
#include "sim/report/result.h"
#include "sim/report/trace.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The pipeline up to the engine, for those who want to see inside.
struct PlayedScenario {
  Schedule schedule;
  Lowered lowered;
  Simulation simulation;  // its timeline knows who represents whom
};

// Throws Error when the scenario cannot be planned or its schedule cannot be played.
PlayedScenario PlayScenario(const Scenario& scenario, const SimulationOptions& options = {});

// What it means, but for the cost of wall time and memory.
Result Describe(const Scenario& scenario, const PlayedScenario& played);

struct Rehearsal {
  Schedule schedule;
  Timeline timeline;
  Result result;
  TraceNames names;
};

struct RehearsalOptions {
  bool record_link_loads = false;  // for the trace's counters
};

// As PlayScenario() throws.
Rehearsal Rehearse(const Scenario& scenario, const RehearsalOptions& options = {});

}  // namespace rehearse
