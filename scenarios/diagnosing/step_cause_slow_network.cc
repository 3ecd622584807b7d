// What leaves a machine is slow: all NICs, or what a few of them hold back.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause SlowStepNetworkRow() {
  return {
      "slow-network",
      "NICs are slower than they should be, or fewer are used",
      "all_reduce_perf over all boxes, and rehearse diagnose on its log",
      Geometric(0.85, 0.02, 7),
      true,
      ShareWords,
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        return {WithEdit(
            subject, {{"links", "**"}, {"kind", "network"}, {"bandwidth", FactorText(strength)}})};
      },
      "of the bandwidth"};
}

}  // namespace rehearse
