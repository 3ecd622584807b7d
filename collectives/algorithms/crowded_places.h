// What rings and trees across do with places of a group's machines whose members share a NIC,
// because a machine has lost one.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

// `machines` are positions in `ranks`, by machine, equally many in each; returns the places among
// them with which trees carry the most, for as many places on a NIC as there may be, in every
// machine: all of them, unless some machine lacks links that others have
// (Router::HasMachinesApart). NCCL has as many channels as there are NICs to enter and leave by.
std::vector<uint32_t> PlacesWithNics(Router& router, const std::vector<uint32_t>& ranks,
                                     const std::vector<std::vector<uint32_t>>& machines);

// An order of an even number of places in which those of two members on one NIC are opposite each
// other, as far as possible. A ring that zigzags (collectives/algorithms/linked_ring.h) enters a
// machine by one of them and leaves it by the other; so does the one back, and without one of these
// two the other has the NIC for itself, both ways.
std::vector<uint32_t> WithNeighboursOpposite(Router& router, const std::vector<uint32_t>& ranks,
                                             const std::vector<std::vector<uint32_t>>& machines);

}  // namespace rehearse
