// Which algorithm, protocol and channels a collective takes, and what a step of it costs.
//
// Lowering asks once for every collective of every group: names that a user pinned are taken as they are,
// "auto" is chosen here. What the answer means in lowering, at every fidelity:
//   a step from a to b first waits  (latency of the route) + (step_inside or step_across, by whether the
//   route leaves the machine), never less than zero, then puts  bytes / bandwidth_share  on its links;
//   the collective as a whole first waits `start`, once.
// So flags and the like show up as bytes on the wire.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/protocol.h"
#include "sim/quantity.h"
#include "topology/router.h"

namespace rehearse {

struct ChoiceQuestion {
  const Collective& collective;
  const std::vector<uint32_t>& ranks;  // the group, in member order; at least two
  uint32_t channels = 0;               // > 0 caps them
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  Protocol protocol = Protocol::kSimple;
  uint32_t channels = 0;  // > 0 caps those of the algorithm
  Seconds start;
  // Unless something better is known, the cluster's step overhead. Negative where a protocol is quicker
  // than the machine's latencies say (the presets' are those of NCCL's ring with Simple).
  Seconds step_inside;
  Seconds step_across;
  double bandwidth_share = 1;  // of the bytes on the wire that are data; in (0, 1]
};

// Throws Error for names that are not known, and for an algorithm that cannot do the kind. Whether the
// group suits a pinned algorithm is checked when its steps are laid out.
Choice ChooseAlgorithm(const ChoiceQuestion& question, Router& router);

}  // namespace rehearse
