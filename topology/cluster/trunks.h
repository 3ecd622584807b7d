// Trunks: bundles of parallel cables over which a fabric sprays its traffic packet by packet: all
// cables from a leaf to the spines, from a pod to the cores, from one group of a dragonfly to
// another, each direction separately.
//
// To routes, flows and reports a trunk is one link that carries what its cables carry together.
// Trunks are numbered after the links: trunk t of a cluster is link link_count() + t
// (topology/cluster/cluster.h). Equal loads on the cables of a bundle are exact if the cables are
// equal; where they differ (topology/files/edits.h) each takes as much as it can carry, as with
// adaptive routing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse {

struct Trunks {
  // Vertices; if the cables join several switches, the first.
  struct Ends {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  std::vector<Ends> ends;             // by trunk
  std::vector<uint32_t> begin = {0};  // cables[begin[t] .. begin[t + 1]) are those of trunk t
  std::vector<uint32_t> cables;       // links, by index; those that were taken away are left out

  uint32_t count() const { return static_cast<uint32_t>(ends.size()); }
  std::span<const uint32_t> CablesOf(uint32_t trunk) const {
    return std::span(cables).subspan(begin[trunk], begin[trunk + 1] - begin[trunk]);
  }
};

}  // namespace rehearse
