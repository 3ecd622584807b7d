// The tree of switches that add for some ranks, and each rank's way to its root and back.
//
// The root is the first vertex of `kind` on the way from the first rank to the second. Every vertex
// has one way towards the root (the first that was met) and one from it. Each link of the tree
// carries a sum only once, so links already in another member's way are left out of a way.
#pragma once

#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace rehearse {

struct SwitchTree {
  std::vector<SwitchWay> up;    // by rank of `ranks`
  std::vector<SwitchWay> down;  // by rank of `ranks`, too
};

// Whether there is one: the ways of every rank to the first and back, and of the first to the
// second, pass through its root. At least two ranks.
bool MeetAtSwitch(Router& router, const std::vector<uint32_t>& ranks, VertexKind kind);

// Throws Error, naming `algorithm`, if some rank does not pass through such a vertex.
SwitchTree FindSwitchTree(Router& router, const std::vector<uint32_t>& ranks, VertexKind kind,
                          const char* algorithm);

}  // namespace rehearse
