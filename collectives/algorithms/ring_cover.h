// Rings that together use every directed pair of ranks once: on these a full mesh of links carries
// most. They exist for every number of ranks except 4 and 6 (Bermond and Faber, 1976; Tillson,
// 1980).
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Meshes of more ranks are not searched.
inline constexpr uint32_t kMostCovered = 8;

// `size` − 1 rings, each with every rank once, from rank 0 on; none if there are none. CHECKs 2 ≤
// size ≤ kMostCovered.
std::vector<std::vector<uint32_t>> RingsOfAllPairs(uint32_t size);

}  // namespace rehearse
