// Which links held transfers back, and who shared them.
//
// A flow's bottleneck is the link that held it back the longest (Simulation::bottlenecks). Flows
// come in groups that the caller chooses (an op on an axis, say). On a link, a flow counts as often
// as it crosses it, from its start to its end: a folded flow counts as all the transfers that it
// stands for, a ring as each of its edges there.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/program.h"
#include "sim/engine/simulate.h"

namespace rehearse {

struct LinkSharer {
  uint32_t group = 0;
  uint32_t most_at_once = 0;  // crossings by this group
  Bytes bytes;                // over this link
};

struct HoldingLink {
  LinkId link;
  Time time;                        // during which it was the bottleneck of some flow in flight
  uint32_t most_at_once = 0;        // crossings in that time, by anybody
  std::vector<LinkSharer> sharers;  // most bytes first
};

// The links that are the bottleneck of some flow, longest first. `group_of_flow` has one entry per
// flow. A flow counts on its own route, or on its alternative if the bottleneck is there.
std::vector<HoldingLink> FindHoldingLinks(const Program& program, const Simulation& simulation,
                                          const std::vector<uint32_t>& group_of_flow);

}  // namespace rehearse
