// What the models of rings share: which collectives reduce to all or have a root, and their steps.
#pragma once

#include <cstdint>

#include "sim/schedule/schedule.h"

namespace rehearse {

inline bool IsAllReduce(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce; }
inline bool IsRooted(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}
inline bool IsGathering(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

// Steps of a ring without a root.
inline uint32_t NcclRingSteps(CollectiveKind kind, uint32_t members) {
  return (IsAllReduce(kind) ? 2 : 1) * (members - 1);
}

// Bytes of the collective for each byte on the bus.
inline double RingRatio(CollectiveKind kind, uint32_t ranks) {
  return IsRooted(kind) ? 1 : static_cast<double>(ranks) / NcclRingSteps(kind, ranks);
}

}  // namespace rehearse
