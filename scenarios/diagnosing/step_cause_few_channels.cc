// The library runs on few channels, and so on few multiprocessors.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause StepFewChannelsRow() {
  return {"few-channels",
          "NCCL runs on few channels",
          "NCCL_DEBUG=INFO: the number of \"Channel\" lines; NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS",
          {1, 2, 4},
          false,
          [](double channels) { return fmt::format("at most {:.0f}", channels); },
          [](const StepSubject&, double channels) -> std::vector<std::string> {
            return {fmt::format("simulator.channels={:.0f}", channels)};
          }};
}

}  // namespace rehearse
