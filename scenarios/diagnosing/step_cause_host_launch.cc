// The host launches kernels more slowly than the device runs them.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause HostLaunchRow() {
  return {"host-launch",
          "the host launches kernels too slowly",
          "in a profile: gaps between kernels while the host is busy; cpupower frequency-info; "
          "CUDA graphs",
          Geometric(5e-6, 1e-3, 8),
          true,
          AdditionWords,
          [](const StepSubject&, double strength) -> std::vector<std::string> {
            return {fmt::format("training.host_launch=\"{:.9f}s\"", strength)};
          },
          "a kernel"};
}

}  // namespace rehearse
