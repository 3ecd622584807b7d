// In which order a large group goes around its ring.
//
// Up to kSearchedRanks members every ring is considered (collectives/algorithms/channels.h). Larger
// groups keep their order if its ring crosses no link twice; else a shorter tour is sought,
// starting from the better of the given order and the nearest-neighbour tour, by 2-opt moves on the
// sum of the paths' latencies. Members that fill a box of a torus go from neighbour to neighbour
// instead, where it has such a ring (collectives/algorithms/torus_box.h). Effort is bounded
// (kMostOrdered ranks, kMostRounds passes over all pairs); the result is deterministic, ties by
// position, and never longer than the given order.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

inline constexpr uint32_t kMostOrdered = 512;
inline constexpr uint32_t kMostRounds = 64;

// The ranks in ring order, beginning with the first, by the routes of this phase
// (Router::Between). Groups larger than kMostOrdered come back as they are.
std::vector<uint32_t> OrderRing(Router& router, const std::vector<uint32_t>& ranks,
                                uint64_t phase = 0);

}  // namespace rehearse
