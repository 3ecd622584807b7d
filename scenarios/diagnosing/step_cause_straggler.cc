// One device computes slowly, and all others wait for it.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause StragglerRow() {
  return {"straggler",
          "one GPU computes slower than the others, which wait for it",
          "nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE on every box; the rank that waits least "
          "in its collectives",
          Geometric(0.92, 0.1, 8),
          true,
          ShareWords,
          [](const StepSubject& subject, double strength) -> std::vector<std::string> {
            return {WithEdit(subject, {{"devices", subject.cluster.DeviceName(0)},
                                       {"compute", FactorText(strength)}})};
          },
          "of the arithmetic",
          false,
          true};
}

}  // namespace rehearse
