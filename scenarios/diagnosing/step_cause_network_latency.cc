// What leaves a machine arrives late.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause StepNetworkLatencyRow() {
  return {
      "network-latency",
      "messages between boxes take longer to arrive",
      "ib_write_lat between two boxes; all_reduce_perf of 8 B, and rehearse diagnose on its log",
      Geometric(5e-6, 1e-3, 5),
      true,
      AdditionWords,
      [](const StepSubject& subject, double strength) -> std::vector<std::string> {
        return {WithEdit(subject, {{"links", "**"},
                                   {"kind", "network"},
                                   {"latency", fmt::format("+{:.9f}s", strength / 2)}})};
      },
      "more"};
}

}  // namespace rehearse
