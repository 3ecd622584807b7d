// What else could be measured on the machine of a log, so that causes which agree about the log can
// be told apart.
#pragma once

#include <vector>

#include "scenarios/diagnosing/log_diagnosis.h"

namespace rehearse {

// Those that are possible with the ranks of the run's first group, with what is expected of each.
std::vector<OtherMeasurement> OtherMeasurementsOf(const CollectiveRun& run);

// What it would take with what is suspected; zero if it cannot be.
Seconds TimeWith(const SuspectedCause& suspect, const OtherMeasurement& other);

}  // namespace rehearse
