// Runs a schedule to learn what its ops take: as real/execution/execute.h does, and knows of every
// step whether the machine was left alone meanwhile.
//
// After every step the ranks exchange one integer a few times, the quickest of which tags the state
// that the host is in: it flips between two, about 0.25 µs and 0.5 µs for such an exchange, for
// seconds at a time. A step is kept when each rank lost at most 3 % of the time since the step
// before to others: it was not queued behind other threads and the machine was not stolen from.
// Waiting that a rank chooses (it sleeps until a message comes) is not lost, so this is the rule
// "CPU time ≥ 0.97 × cores × wall" for ranks that sleep as well as for ranks that poll. Where there
// are more ranks than cores they queue behind each other; then a step is kept when together they
// had at least 90 % of the cores (the rest is theirs too, while they wait for each other). A GPU
// keeps its own time: there every step is kept.
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

inline constexpr double kLeastKept = 0.97;
inline constexpr double kLeastUsed = 0.90;

struct ProbedStep {
  Timeline timeline;
  std::vector<HostShares> shares;  // by rank
  Seconds ping;                    // one integer to all and back, the quickest

  bool IsKept(uint32_t cores) const;
};

struct ProbeOptions {
  uint32_t kept = 15;                // steps wanted
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

// All ranks call it; the others' result says only `blocking`, `schedule` and `backend`.
Probe RunProbe(const Schedule& schedule, Transport& transport, const ExecutionOptions& options);

// The same in batches, until enough steps are kept or patience is at an end (rank 0 decides). Steps
// of all batches. All ranks throw Stopped when it is stopped before.
Probe RunUntilKept(const Schedule& schedule, Transport& transport, const ProbeOptions& options);

}  // namespace rehearse
