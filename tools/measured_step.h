// A log of the run that a scenario was imported from, beside what is predicted for it.
#pragma once

#include <string>

namespace rehearse {

// Simulates the scenario, though it might not fit, since it has run. Throws Error if the log does
// not say how long steps took.
std::string MeasuredAndPredicted(const std::string& scenario_text, const std::string& log_path);

}  // namespace rehearse
