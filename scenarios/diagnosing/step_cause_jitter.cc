// Kernels take now longer, now shorter, and at every collective all wait for the slowest.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause JitterRow() {
  return {"jitter",
          "kernels take now longer, now shorter: at every collective all wait for the slowest",
          "in profiles of several ranks: the same kernel, step by step; other jobs on the hosts, "
          "clocks that go up and down, daemons on the launching thread's core",
          {0.03, 0.1, 0.2, 0.3},
          true,
          ShareWords,
          [](const StepSubject&, double deviation) -> std::vector<std::string> {
            return {"simulator.perturbation.seed=1",
                    fmt::format("simulator.perturbation.compute_jitter={:.6f}", deviation)};
          },
          "standard deviation",
          false,
          std::nullopt};
}

}  // namespace rehearse
