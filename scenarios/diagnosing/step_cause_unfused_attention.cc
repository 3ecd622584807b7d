// Attention is not fused: scores of all pairs of tokens go through memory.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause UnfusedAttentionRow() {
  return {"unfused-attention",
          "attention is not fused",
          "in a profile: softmax kernels of their own; the package flash-attn, and which backend "
          "SDPA takes",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject& subject, double) -> std::vector<std::string> {
            if (HasValue(subject, "/training/attention", "unfused")) return {};
            return {"training.attention=\"unfused\""};
          }};
}

}  // namespace rehearse
