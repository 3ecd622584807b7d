// The pipeline: Scenario -> Jobs -> Schedule -> Program -> Timeline -> Result, as one readable
// function.
#pragma once

#include <optional>
#include <vector>

#include "collectives/lowering/lower.h"
#include "scenarios/playing/jobs_result.h"
#include "scenarios/readers/scenario.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline.h"
#include "sim/report/job_part.h"
#include "sim/report/result.h"
#include "sim/report/trace.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// The pipeline up to the engine, for those who want to see inside.
struct PlayedScenario {
  std::vector<Job> jobs;  // as the machine runs them (scenarios/playing/calibrated.h)
  Schedule schedule;      // of all of them: its ranks are the cluster's devices
  Lowered lowered;
  Simulation simulation;  // its timeline knows who represents whom
};

// Throws Error when the scenario cannot be planned or its schedule cannot be played. A seed of
// routes that is not given is 0 (scenarios/playing/seeded_routes.h tries several).
PlayedScenario PlayScenario(const Scenario& scenario, const SimulationOptions& options = {});
// The same from what Prepare() made of it on.
PlayedScenario PlayJobs(const Scenario& scenario, std::vector<Job> jobs,
                        const SimulationOptions& options = {});

// What a scenario's own step did, on its own ranks. Nothing where that is all there is: the joint
// schedule and its timeline are it, or there are jobs.
std::optional<JobPart> OwnPart(const Scenario& scenario, const PlayedScenario& played);
// What that part means, or the whole; but for the cost of wall time and memory.
Result Describe(const Scenario& scenario, const PlayedScenario& played,
                const std::optional<JobPart>& own);

struct Rehearsal {
  Schedule schedule;
  Timeline timeline;
  Result result;
  std::optional<JobsResult> jobs;  // of a scenario that lists some
  TraceNames names;
};

struct RehearsalOptions {
  bool record_link_loads = false;  // for the trace's counters
  ProgressObserver* observer = nullptr;
  unsigned threads = 0;  // that try seeds of routes; 0: as many as the machine has cores
};

// As PlayScenario() throws. Jobs are played once more, each alone, to tell how much the others slow
// them down.
Rehearsal Rehearse(const Scenario& asked, const RehearsalOptions& options = {});

}  // namespace rehearse
