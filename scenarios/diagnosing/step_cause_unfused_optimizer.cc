// The optimizer runs an operation at a time.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause UnfusedOptimizerRow() {
  return {
      "unfused-optimizer",
      "the optimizer is not fused",
      "in a profile: the time from the end of the backward pass to the next forward pass; "
      "AdamW(fused=True)",
      {0, 1},
      false,
      [](double which) {
        return std::string(which > 0 ? "an operation and array at a time"
                                     : "an operation at a time");
      },
      [](const StepSubject&, double strength) -> std::vector<std::string> {
        return {strength > 0 ? "training.optimizer=\"loop\"" : "training.optimizer=\"foreach\""};
      }};
}

}  // namespace rehearse
