// In which order the devices of one machine follow each other where they are joined by links of
// their own, in rings and chains over several machines.
//
// Only some pairs have one (dies of MI250X, V100s on a cube mesh): NCCL and RCCL keep to these
// links, so all channels follow one ring along them, every second the other way.
// All pairs have one (MI300X, A100s without a switch): if all channels went round in one order,
// they would share its few links. So a channel zigzags from the device beside its NIC, s, s+1, s-1,
// s+2, s-2, ..., to the one opposite: the differences are all different, so that the channels of
// an even number of devices cross every link exactly once each way (Walecki's paths, Lucas 1892;
// RCCL has tables of orders for such machines). Of an odd number they cross some twice.
// An NVSwitch and a host join all pairs alike, and the order does not matter.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

inline constexpr uint32_t kMostLinked = 8;  // devices; more are not searched
inline constexpr uint32_t kMostMeshed = 32;

struct LinkedRing {
  std::vector<uint32_t> ring;  // positions among the devices; empty: no such ring
  bool is_xgmi = false;        // all links between the devices are
};

// The widest ring over links alone; of equally wide ones the one with the most capacity, of these
// the first. There is none where all pairs have links, or outside of 3 to kMostLinked devices.
LinkedRing WidestLinkedRing(Router& router, const std::vector<uint32_t>& devices);

// How the members of a machine are joined.
enum class Joined : uint8_t {
  kAnyhow,     // through switches or the host
  kAlongRing,  // some pairs have links of their own; members are sorted along the widest ring
  kAsMesh,     // all pairs have
};

// Says how the members of each machine, positions in `ranks`, are joined, and sorts them along the
// widest ring of links where there is one. Equal machines are searched only once.
std::vector<Joined> SortAlongLinks(Router& router, const std::vector<uint32_t>& ranks,
                                   std::vector<std::vector<uint32_t>>* machines);

// Appends a machine's members for a channel, beginning with the `first`. Along a ring every second
// channel goes the other way round, so that both directions of the links are used.
void AppendInTurn(const std::vector<uint32_t>& members, size_t first, Joined joined, size_t channel,
                  std::vector<uint32_t>* order);

}  // namespace rehearse
