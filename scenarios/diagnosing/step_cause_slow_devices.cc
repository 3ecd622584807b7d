// All devices compute slowly: a cap on power or clock, heat, or another kernel library.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause SlowDevicesRow() {
  return {"slow-devices",
          "all GPUs compute slower than they should (clock, power cap, heat, or slow kernels)",
          "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE under load: SM clock, and why it is throttled; "
          "a product alone (torch.utils.benchmark)",
          Geometric(0.92, 0.1, 8),
          true,
          ShareWords,
          [](const StepSubject& subject, double strength) -> std::vector<std::string> {
            return {WithEdit(subject, {{"devices", "**"}, {"compute", FactorText(strength)}})};
          },
          "of the arithmetic"};
}

}  // namespace rehearse
