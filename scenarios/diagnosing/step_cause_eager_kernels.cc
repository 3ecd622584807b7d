// Element-wise kernels run op by op.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause EagerKernelsRow() {
  return {"eager-kernels",
          "element-wise kernels run one by one (eager, not fused or compiled)",
          "in a profile: many short kernels named vectorized_elementwise; torch.compile, or fused "
          "norms",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject& subject, double) -> std::vector<std::string> {
            if (HasValue(subject, "/training/kernels", "eager")) return {};
            return {"training.kernels=\"eager\""};
          }};
}

}  // namespace rehearse
