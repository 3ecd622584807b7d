// The tables of a scenario and of its "simulator" (scenarios/readers/scenario.h says what they
// mean).
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

const ObjectShape& ScenarioShape();
const ObjectShape& SimulatorShape();

}  // namespace rehearse
