// Flows that a switch hashes onto the same cable.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause StepHashCollisionsRow() {
  return {"hash-collisions",
          "switches hash several flows onto one cable while others are idle",
          "all_reduce_perf over all boxes, and rehearse diagnose on its log; counters of the leaf "
          "switches' uplinks; NCCL_IB_QPS_PER_CONNECTION=4",
          {0, 1, 2, 3},
          false,
          [](double seed) { return fmt::format("as with seed {:.0f} of ECMP", seed); },
          [](const StepSubject&, double seed) -> std::vector<std::string> {
            return {"simulator.routing=ecmp", "simulator.queue_pairs=1",
                    fmt::format("simulator.routing_seed={:.0f}", seed)};
          }};
}

}  // namespace rehearse
