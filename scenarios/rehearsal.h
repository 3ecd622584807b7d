// The pipeline: Scenario -> Schedule -> Program -> Timeline -> Result, as one readable function.
#pragma once

#include "scenarios/scenario.h"
#include "sim/result.h"
#include "sim/schedule.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace rehearse {

struct Rehearsal {
  Schedule schedule;
  Timeline timeline;
  Result result;
  TraceNames names;
};

struct RehearsalOptions {
  bool record_link_loads = false;  // for the trace's counters
};

// Throws Error when the scenario cannot be planned or its schedule cannot be played.
Rehearsal Rehearse(const Scenario& scenario, const RehearsalOptions& options = {});

}  // namespace rehearse
