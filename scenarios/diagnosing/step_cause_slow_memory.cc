// Element-wise kernels take long: the devices' memory, or kernels that are not fused.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause SlowMemoryRow() {
  return {
      "slow-memory",
      "GPU memory, or what is bound by it, is slower than it should be",
      "nvidia-smi -q -d CLOCK: memory clock; bandwidthTest, or a large copy alone",
      Geometric(0.92, 0.3, 5),
      true,
      ShareWords,
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        return {WithEdit(subject, {{"devices", "**"}, {"memory_bandwidth", FactorText(strength)}})};
      },
      "of the bandwidth"};
}

}  // namespace rehearse
