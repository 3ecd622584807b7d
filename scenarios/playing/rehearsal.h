// The pipeline Scenario -> Jobs -> Schedule -> Program -> Timeline -> Result, as one readable
// function.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "collectives/lowering/lower.h"
#include "collectives/lowering/packet_settings.h"
#include "scenarios/playing/jobs_result.h"
#include "scenarios/playing/memory_fit.h"
#include "scenarios/readers/scenario.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline.h"
#include "sim/report/job_part.h"
#include "sim/report/result.h"
#include "sim/report/trace.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// The pipeline up to and including the engine, for those who want to see inside.
struct PlayedScenario {
  std::vector<Job> jobs;          // as the machine runs them (scenarios/playing/calibrated.h)
  std::optional<Schedule> joint;  // unless there is one job, whose schedule that is
  Lowered lowered;                // with some copies fewer, if the simulation has a recurrence
  Simulation simulation;          // its timeline says which rank represents which
  // If that is more than 0, the timeline lacks the spans of as many copies (CopiedSpans::kLeftOut).
  uint32_t copies_left_out = 0;

  // Of all jobs: its ranks are the cluster's devices.
  const Schedule& schedule() const { return joint ? *joint : jobs.front().schedule; }
};

// Whether the timeline of a step of which few copies were played (scenarios/playing/few_copies.h)
// has the spans of all, or whether all copies are to be played. Its end, its links and their bytes
// are always those of the whole step. Where they are left out, the spans of a large step are not
// kept either, but made when somebody goes over them (Timeline::played), for as long as the program
// is there.
enum class CopiedSpans : uint8_t { kWrittenOut, kLeftOut, kAllArePlayed };

// Throws Error if the scenario cannot be planned or its schedule cannot be played. If no seed of
// routes is given, it is 0 (scenarios/playing/seeded_routes.h tries several).
PlayedScenario PlayScenario(const Scenario& scenario, const SimulationOptions& options = {});
// The same, starting from the jobs that Prepare() made. `memory`, unless it is null, is of the
// scenario's cluster, routing and library (scenarios/playing/group_memories.h), and no link fails.
PlayedScenario PlayJobs(const Scenario& scenario, std::vector<Job> jobs,
                        const SimulationOptions& options = {}, GroupMemory* memory = nullptr,
                        CopiedSpans copied = CopiedSpans::kWrittenOut);

// What a scenario's own step did, on its own ranks. Nothing if the joint schedule and its timeline
// are already that, or if there are jobs.
std::optional<JobPart> OwnPart(const Scenario& scenario, const PlayedScenario& played);
// Describes that part, or the whole, without the cost of wall time and memory.
Result Describe(const Scenario& scenario, const PlayedScenario& played,
                const std::optional<JobPart>& own, const SummaryOptions& options = {});
// The same, if it is known what memory the tightest rank needs.
Result Describe(const Scenario& scenario, const PlayedScenario& played,
                const std::optional<JobPart>& own, const MemoryFit& fit,
                const SummaryOptions& options = {});

// How the scenario's packets travel. Throws Error for what its network cannot be.
PacketSettings PacketSettingsOf(const Scenario& scenario);

// What a rehearsal takes, from here on.
class RehearsalClock {
 public:
  Seconds Past() const;

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};
Bytes PeakResidentMemory();  // of this process

struct Rehearsal {
  Schedule schedule;
  Timeline timeline;
  Result result;
  std::optional<JobsResult> jobs;  // of a scenario that lists jobs
  TraceNames names;
};

struct RehearsalOptions {
  bool record_link_loads = false;  // for the trace's counters
  ProgressObserver* observer = nullptr;
  unsigned threads = 0;           // for seeds of routes; 0: as many as the machine has cores
  bool hash = true;               // Result::timeline_hash
  GroupMemory* memory = nullptr;  // as for PlayJobs(), of ways that no seed decides
  bool allocations = false;       // Result::memory_idle
  // Result::placement also of steps whose devices are not drawn. Plays up to two more steps.
  bool best_placement = false;
  // Timeline::spans; without them, large pipelines take less time and memory.
  bool spans = true;
  // Is shown the spans of the whole step rank by rank, whether they are kept or not. Not of
  // scenarios that list jobs.
  std::function<void(const Schedule&, const Timeline&, const SpansByRank&)> look = {};
};

// Throws as PlayScenario() does. Jobs are played again, each on its own, where they are and on the
// best devices, to tell how much others and their placement slow them down.
Rehearsal Rehearse(const Scenario& asked, const RehearsalOptions& options = {});

}  // namespace rehearse
