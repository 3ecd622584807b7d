// Groups whose members fill a box of a torus or mesh, each on a router of its own: those for which
// the dimensions of the grid can be used one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

struct TorusBox {
  struct Axis {
    uint32_t extent = 2;       // at least
    bool is_in_a_row = true;   // its members are neighbours, one after the other
    bool is_a_circle = false;  // and so are the last and the first
  };
  std::vector<Axis> axes;       // those along which there are several members
  std::vector<uint32_t> order;  // by position in the box, the first axis fastest: which member
};

// Nothing if they fill none; `why` (null: nobody asks) then says what is missing.
std::optional<TorusBox> BoxOf(const Cluster& cluster, const std::vector<uint32_t>& ranks,
                              std::string* why = nullptr);

// The members' ranks around a ring that goes from neighbour to neighbour, the first one first.
// Every link is used once at most, whichever dimension comes first. Nothing if the box has no such
// ring or we know none: some axis must be an even circle.
std::optional<std::vector<uint32_t>> RingOfNeighbours(const Cluster& cluster,
                                                      const std::vector<uint32_t>& ranks);

}  // namespace rehearse
