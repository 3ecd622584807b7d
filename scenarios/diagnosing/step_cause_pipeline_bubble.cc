// The order of the pipeline's work leaves ranks idle for longer.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause PipelineBubbleRow() {
  return {
      "pipeline-bubble",
      "the pipeline's schedule has a larger bubble (not interleaved, or too few micro-batches)",
      "the run's settings: virtual stages, micro-batches; idle time at the step's beginning and "
      "end on first and last stages",
      {0, 1, 2},
      false,
      [](double which) {
        return std::string(which > 1 ? "half as many micro-batches" : which > 0 ? "gpipe" : "1f1b");
      },
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        if (!subject.scenario.contains("pipeline")) return {};
        const nlohmann::json::json_pointer path("/training/micro_batches");
        const auto now = subject.scenario.value(path, uint64_t{1});
        if (strength > 1) return {fmt::format("training.micro_batches={}", now / 2)};
        return {strength > 0 ? "pipeline.schedule=\"gpipe\"" : "pipeline.schedule=\"1f1b\"",
                "pipeline.virtual=1"};
      }};
}

}  // namespace rehearse
