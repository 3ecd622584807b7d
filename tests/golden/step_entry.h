// What a step comes to, for a golden record: figures that a person can read, and digests of all
// that is written about it.
#pragma once

#include <string>

#include "scenarios/readers/scenario.h"

namespace rehearse {

// A few lines; one with the message if the scenario cannot be played.
std::string StepEntry(const Scenario& scenario);

}  // namespace rehearse
