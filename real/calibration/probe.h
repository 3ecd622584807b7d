// Runs a schedule to learn how long its ops take, as real/execution/execute.h does, and records for
// every step whether other programs disturbed it.
//
// After every step the ranks exchange one integer a few times. The quickest exchange shows the
// state of the host, which flips between two, about 0.25 µs and 0.5 µs per exchange, for seconds at
// a time. A step is kept if each rank lost at most 3 % of the time since the step before to others:
// it was not queued behind other threads, and the machine was not stolen from. Waiting that a rank
// chooses (it sleeps until a message comes) is not lost, so this is the rule "CPU time ≥ 0.97 ×
// cores × wall" both for ranks that sleep and for ranks that poll. If there are more ranks than
// cores, they queue behind each other; then a step is kept if together they had at least 90 % of
// the cores (the rest is theirs too, while they wait for each other). A GPU keeps its own time:
// there every step is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "real/backends/host.h"
#include "real/execution/execute.h"
#include "real/transports/transport.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct ProbedStep {
  Timeline timeline;
  std::vector<HostShares> shares;  // by rank
  Seconds ping;                    // one integer to all and back, the quickest

  bool IsKept(uint32_t cores) const;
  bool WasStolen() const;  // the machine, for a moment
};

struct ProbeOptions {
  uint32_t kept = 15;                // steps to keep
  Seconds patience = Seconds(8);     // at most
  BackendFactory backend = nullptr;  // nothing: the CPU in fp32, whose steps can be disturbed
  StreamUse streams = StreamUse::kAuto;
  std::function<bool()> is_stopped = nullptr;  // asked on rank 0 after each batch
};

struct Probe {
  uint32_t cores = 1;  // of the host
  bool keeps_all = false;
  bool blocking = false;
  Schedule schedule;  // as it was run
  std::string backend;
  std::vector<ProbedStep> steps;  // after the warm-ups

  std::vector<const ProbedStep*> Kept() const;
};

// All ranks call it; on ranks other than 0 the result has only `blocking`, `schedule` and
// `backend`.
Probe RunProbe(const Schedule& schedule, Transport& transport, const ExecutionOptions& options);

// The same in batches, until enough steps are kept or patience runs out (rank 0 decides). The
// result has the steps of all batches. All ranks throw Stopped when it is stopped before that.
Probe RunUntilKept(const Schedule& schedule, Transport& transport, const ProbeOptions& options);

}  // namespace rehearse
