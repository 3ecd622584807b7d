// An algorithm of all-reduce is pinned that NCCL would not choose.
#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {
namespace {

const char* NameOfPin(double number) { return number < 1 ? "ring" : "tree"; }

}  // namespace

StepCause StepAlgorithmPinnedRow() {
  return {"algorithm-pinned",
          "an algorithm of all-reduce is pinned that NCCL would not choose",
          "env | grep NCCL_ALGO, and /etc/nccl.conf",
          {0, 1},
          false,
          [](double number) { return std::string(NameOfPin(number)); },
          [](const StepSubject& subject, double number) -> std::vector<std::string> {
            if (HasValue(subject, "/simulator/algorithm", NameOfPin(number))) return {};
            return {fmt::format(
                R"(simulator.collectives=[{{"kind": "all-reduce", "algorithm": "{}"}}])",
                NameOfPin(number))};
          }};
}

}  // namespace rehearse
