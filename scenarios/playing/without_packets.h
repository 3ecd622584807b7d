// Commands that ask what held each transfer back, which packets do not say.
#pragma once

#include "scenarios/readers/scenario.h"

namespace rehearse {

// Throws Error for a scenario at fidelity packet, before anything is played.
void RefusePackets(const Scenario& scenario);

}  // namespace rehearse
