// Weights are gathered when they are needed, not before.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause GathersNotAheadRow() {
  return {"gathers-not-ahead",
          "weights are gathered only when they are needed (no prefetch, or wrapped wrongly)",
          "in a profile: all-gathers with no kernel beside them; FSDP's wrapping and its prefetch "
          "settings",
          {0, 1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject&, double strength) -> std::vector<std::string> {
            return {strength > 0 ? "strategy.overlap_all_gather=false" : "strategy.prefetch=0"};
          }};
}

}  // namespace rehearse
