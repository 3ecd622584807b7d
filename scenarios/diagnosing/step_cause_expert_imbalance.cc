// Tokens visit few experts.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause ExpertImbalanceRow() {
  return {"expert-imbalance",
          "experts get unequal shares of the tokens",
          "the router's counts of tokens per expert; in a profile: ranks that wait in all-to-alls",
          {1.5, 2, 3, 5, 8},
          true,
          [](double factor) { return fmt::format("{:.2g} times the mean", factor); },
          [](const StepSubject&, double strength) -> std::vector<std::string> {
            return {fmt::format("model.experts.imbalance={}", strength)};
          },
          "for the busiest",
          false,
          std::nullopt};
}

}  // namespace rehearse
