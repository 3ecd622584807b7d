// Large collectives of a step that reach less than half of what the wires allow
// (collectives/lowering/wire_bound.h), alone on idle devices, and what holds them back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/lowering/wire_bound.h"
#include "scenarios/readers/scenario.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct FarCollective {
  std::string axis;  // communicator
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes bytes;
  uint32_t ranks = 0;
  AlgorithmId algorithm = AlgorithmId::kRing;
  Seconds time;
  WireBound bound;
  std::string cause;  // a sentence's end: "tree would take 12 ms", "the NIC ... carries ..."
};

// Of each communicator and kind the largest size, from 16 MiB on; of the first group. None for
// groups that leave devices of their machines out, whose links and NICs the bound counts too, for
// scenarios that list jobs, and for clusters and groups so large that looking takes long.
std::vector<FarCollective> FarFromBound(const Schedule& schedule, const Scenario& scenario);

// "Far from the wires", a line or two for each; "" if there are none.
std::string ToText(const std::vector<FarCollective>& far);

}  // namespace rehearse
