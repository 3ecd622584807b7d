// Products run in fp32 (as tf32) instead of bf16.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause PrecisionRow() {
  return {"precision",
          "products run in fp32 or tf32 instead of bf16",
          "in a profile: kernel names with s1688 or tf32; autocast, or the run's dtype",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject&, double) -> std::vector<std::string> {
            return {"training.precision=\"fp32\""};
          }};
}

}  // namespace rehearse
