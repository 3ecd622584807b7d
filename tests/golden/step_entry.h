// What a step comes to, for a golden record: figures that a person can read, and digests of all
// that is written about it.
#pragma once

#include <string>

#include "scenarios/readers/scenario.h"

namespace rehearse {

struct StepEntryOptions {
  bool brief = false;  // without ops and memory, which are in the digests too
  // With loads of links; then all micro-batches are played, even if the first ones say how the
  // others go (scenarios/playing/few_copies.h).
  bool loads = true;
};

// A few lines; one with the message if the scenario cannot be played.
std::string StepEntry(const Scenario& scenario, const StepEntryOptions& options = {});

}  // namespace rehearse
