// How long one hop of a ring takes: NCCL's own constants for the ring algorithm with the Simple
// protocol (NVIDIA/nccl 5067397c, src/graph/tuning.cc, hwLatencies). The links of a path between
// two devices share a hop's latency, so that clusters need no step_overhead. How they share it does
// not matter to a ring, only the sum does.
#pragma once

#include "sim/base/quantity.h"

namespace rehearse {

inline constexpr Seconds kNvLinkHop(3.4e-6);
inline constexpr Seconds kPcieHop(5.7e-6);
inline constexpr Seconds kNetworkHop(14.0e-6);

}  // namespace rehearse
