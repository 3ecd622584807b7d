// All-reduces of tensor parallelism hide behind nothing.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause TensorNotBesideRow() {
  return {"tensor-not-beside",
          "collectives of tensor parallelism are not hidden behind the product of dW",
          "in a profile: all-reduces within a layer with no kernel beside them; "
          "CUDA_DEVICE_MAX_CONNECTIONS=1",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject&, double) -> std::vector<std::string> {
            return {"strategy.overlap_all_reduce=false"};
          }};
}

}  // namespace rehearse
