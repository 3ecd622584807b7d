// The rows of the table of presets: one function each, in preset_*.cc, gathered in presets.cc.
#pragma once

#include "topology/presets.h"

namespace rehearse {

ClusterPreset DgxA100();
ClusterPreset DgxA100With80Gigabytes();
ClusterPreset Perlmutter();
ClusterPreset PlainSwitch();

// Time of one hop of a ring in NCCL's own model: NVIDIA/nccl 5067397c, src/graph/tuning.cc, hwLatencies, ring
// algorithm, Simple protocol. The links of a path between two GPUs share it out among themselves, so that a
// cluster built from these needs no step_overhead. How it is shared does not matter to a ring, only the sums.
inline constexpr Seconds kNvLinkHop(3.4e-6);
inline constexpr Seconds kPcieHop(5.7e-6);
inline constexpr Seconds kNetworkHop(14.0e-6);

}  // namespace rehearse
