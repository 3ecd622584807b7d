// The batch is computed in more and smaller parts.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause SmallMicroBatchesRow() {
  return {
      "small-micro-batches",
      "micro-batches are smaller than given",
      "the run's log: micro batch size and accumulation steps",
      {2, 4, 8},
      false,
      [](double divisor) { return fmt::format("1/{:.0f} of the size", divisor); },
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        const nlohmann::json::json_pointer path("/training/micro_batches");
        const auto now = subject.scenario.value(path, uint64_t{1});
        return {fmt::format("training.micro_batches={}", now * static_cast<uint64_t>(strength))};
      }};
}

}  // namespace rehearse
