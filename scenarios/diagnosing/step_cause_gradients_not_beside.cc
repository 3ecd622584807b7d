// Gradients are summed after the backward pass, not beside it.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause GradientsNotBesideRow() {
  return {"gradients-not-beside",
          "gradients are summed after the backward pass instead of beside it",
          "in a profile: all-reduces or reduce-scatters after the last backward kernel; buckets, "
          "overlap_grad_reduce",
          {0, 1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject&, double strength) -> std::vector<std::string> {
            return {strength > 0 ? "strategy.overlap_reduce_scatter=false"
                                 : "strategy.overlap_gradients=false"};
          }};
}

}  // namespace rehearse
