// What a collective puts on the links, and which of them limits it.
#pragma once

#include <cstdint>

#include "collectives/lowering/rounds.h"

namespace rehearse {

// How the group would do it with this choice: the parts, but none of the figures that lowering
// adds. Throws Error if the algorithm does not suit the group.
GroupPlan ArrangePlan(const Choice& choice, CollectiveKind kind, uint32_t root,
                      const std::vector<uint32_t>& ranks, Router& router, ChannelFinder& finder);

struct BindingLink {
  uint32_t link = 0;
  double bytes =
      0;  // that cross it for each byte of the collective, including the protocol's flags
};

// The link that needs longest for what crosses it in all rounds together; the first of equals.
// CHECKs that the plan moves something.
BindingLink BindingLinkOf(const GroupPlan& plan, Router& router);
// The same from the rounds of its parts.
BindingLink BindingLinkOf(const GroupPlan& plan, const std::vector<std::vector<RoundFlow>>& rounds,
                          const Cluster& cluster);

}  // namespace rehearse
