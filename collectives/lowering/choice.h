// Which algorithm, protocol and channels a collective takes, and what that costs besides moving its
// bytes: what collectives/lowering/tuning.h answers.
//
// What the answer means in lowering, at every fidelity:
//   the collective as a whole first waits `start`, once: launching or the library's latency;
//   if steps_wait, a step from a to b waits  (latency of the route) + step_overhead,  else nothing:
//   then `start` holds all the latency that there is;
//   a step puts  bytes / bandwidth_share  on the links of the route. So a protocol's flags, and the
//   rate that a channel cannot reach, show up as bytes on the wire, and an idle machine takes the
//   time that NCCL's model says.
#pragma once

#include <cstdint>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/quantity.h"
#include "sim/schedule/collective_choice.h"

namespace rehearse {

struct Choice {
  const Algorithm* algorithm = nullptr;
  Protocol protocol = Protocol::kNone;
  uint32_t channels = 0;       // > 0 caps those of the algorithm
  uint32_t nccl_channels = 0;  // what NCCL would use; 0 on bare links
  Seconds latency;             // of NCCL's model, all of it
  Seconds start;               // max(launching, latency)
  bool steps_wait = true;
  Seconds step_overhead;
  double bandwidth_share = 1;  // of the bytes on the wire that are data; in (0, 1]

  friend bool operator==(const Choice&, const Choice&) = default;
};

}  // namespace rehearse
