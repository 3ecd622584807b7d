// In which order the devices of one machine follow each other, where only some pairs of them have a
// link of their own: dies of MI250X, V100s on a cube mesh. NCCL and RCCL keep to such links inside
// a machine, so rings and chains of several machines need paths along them; an NVSwitch, a full
// mesh and a host join all pairs alike.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

inline constexpr uint32_t kMostLinked = 8;  // devices; more are not searched

struct LinkedRing {
  std::vector<uint32_t> ring;  // positions among the devices; empty: no such ring
  bool is_xgmi = false;        // all links between the devices are
};

// The widest ring over links alone; of equally wide ones the one with the most capacity, of these
// the first. There is none where all pairs have links, or outside of 3 to kMostLinked devices.
LinkedRing WidestLinkedRing(Router& router, const std::vector<uint32_t>& devices);

// Sorts the members of each machine, positions in `ranks`, along that ring where there is one, and
// says where. Equal machines are searched only once.
std::vector<bool> SortAlongLinks(Router& router, const std::vector<uint32_t>& ranks,
                                 std::vector<std::vector<uint32_t>>* machines);

// Appends a machine's members for a channel, from the `first` on. Along links every second channel
// goes the other way round, so that both directions of the links are used.
void AppendInTurn(const std::vector<uint32_t>& members, size_t first, bool are_linked,
                  size_t channel, std::vector<uint32_t>* order);

}  // namespace rehearse
