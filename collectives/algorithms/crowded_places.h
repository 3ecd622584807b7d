// Which places of a group's machines are left out as ends of trees across, because a machine has
// lost their NIC.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

// `machines` are positions in `ranks`, by machine, equally many in each; returns the places among
// them whose members have as few others on their NIC as any, in every machine: all of them, unless
// some machine lacks links that others have (Router::HasMachinesApart). NCCL has as many channels
// as there are NICs to enter and leave by.
std::vector<uint32_t> PlacesWithNics(Router& router, const std::vector<uint32_t>& ranks,
                                     const std::vector<std::vector<uint32_t>>& machines);

}  // namespace rehearse
