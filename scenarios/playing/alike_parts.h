// Which equal parts of a scenario's step may stand for each other: what every mechanism that it
// uses says for itself (sim/schedule/alike.h).
#pragma once

#include "scenarios/readers/scenario.h"
#include "sim/schedule/alike.h"

namespace rehearse {

Alike AlikeUnder(const Scenario& scenario);

}  // namespace rehearse
