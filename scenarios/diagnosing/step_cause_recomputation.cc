// The forward pass is computed again although it need not be.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause RecomputationRow() {
  return {"recomputation",
          "activations are computed again (full recomputation is on)",
          "the run's settings: activation checkpointing; in a profile, the forward kernels of a "
          "layer twice",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject& subject, double) -> std::vector<std::string> {
            if (HasValue(subject, "/training/recomputation", "full")) return {};
            return {"training.recomputation=\"full\""};
          }};
}

}  // namespace rehearse
