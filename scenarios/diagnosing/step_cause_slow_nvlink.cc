// What stays in a machine is slow.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause SlowStepNvLinkRow() {
  return {
      "slow-nvlink",
      "NVLink is slower than it should be, or not used",
      "nvidia-smi nvlink -s; all_reduce_perf within one box, and rehearse diagnose on its log",
      Geometric(0.85, 0.05, 6),
      true,
      ShareWords,
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        return {WithEdit(
            subject, {{"links", "**"}, {"kind", "nvlink"}, {"bandwidth", FactorText(strength)}})};
      },
      "of the bandwidth"};
}

}  // namespace rehearse
