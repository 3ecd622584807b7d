// The tables of a scenario and of its "simulator" (scenarios/readers/scenario.h says what they
// mean).
#pragma once

#include "collectives/lowering/lower.h"
#include "sim/base/json_fields.h"
#include "sim/base/json_shape.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

const ObjectShape& ScenarioShape();
// What "simulator" says, without what depends on the cluster or on a step: perturbation and
// collectives.
struct SimulatorOptions {
  LowerOptions lowering;
  FabricRouting routing;
  uint32_t communication_multiprocessors = 0;  // 0: as many as the devices' family is known to take
};
const Fields<SimulatorOptions>& SimulatorFields();
const ObjectShape& SimulatorShape();

}  // namespace rehearse
