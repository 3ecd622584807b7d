// Runs schedules on thread ranks, for tests.
#pragma once

#include <string>

#include "real/execution/check.h"
#include "real/transports/transport_threads.h"

namespace rehearse {

// One step of `schedule` in double on as many threads as it has ranks, compared with
// the serial step.
inline CheckReport ExecuteAndCompare(const StepNumbers& serial, const Schedule& schedule,
                                     uint64_t seed) {
  CheckReport report;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    CheckReport own = CheckAgainst(serial, schedule, transport, seed);
    if (transport.rank() == 0) report = std::move(own);
  });
  return report;
}

// What to print about a report that does not pass: the worst arrays first.
inline std::string DescribeDifferences(const CheckReport& report) {
  std::vector<ArrayDifference> worst = report.arrays;
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& a, const auto& b) { return a.relative > b.relative; });
  std::string text = "loss " + std::to_string(report.loss) + " against " +
                     std::to_string(report.serial_loss) + "; ";
  for (size_t i = 0; i < std::min<size_t>(worst.size(), 8); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3g", worst[i].relative);
    text +=
        "\"" + worst[i].name + "\" on rank " + std::to_string(worst[i].rank) + ": " + number + "; ";
  }
  for (const std::string& name : report.missing) text += "missing \"" + name + "\"; ";
  return text;
}

}  // namespace rehearse
