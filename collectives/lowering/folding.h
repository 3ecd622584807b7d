// Folding: which ranks, sites, transfers and links behave the same, so that one of each is played.
//
// Colour refinement. Start: ranks by role, device and how they straggle; sites by communicator;
// links by capacity, kind and what happens to them; transfers by share, latency and rate. Then
// refine until nothing splits any more: a rank by its sites (and the edges that it sends and
// receives on); a site by its members and transfers; a transfer by its site, the links of its way
// and of its detour, its neighbours in the ring, what it comes after and whom it joins; a switch
// that adds by its transfers; a link by the transfers that cross it or may have to. In the stable
// colouring every member of a class sees the same classes equally often, so that max-min sharing,
// which only depends on these counts, gives all of them the same rates and the same times: the
// quotient can be played instead. Colours are 64-bit hashes (order-free sums for multisets); two
// different neighbourhoods collide with a probability below 1e-6 at ten million objects. Classes
// are numbered by their first member.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/lowering/perturbation.h"
#include "collectives/lowering/transfers.h"

namespace rehearse {

struct Classes {
  std::vector<uint32_t> of;              // object -> class
  std::vector<uint32_t> representative;  // class -> its first object

  uint32_t size() const { return static_cast<uint32_t>(representative.size()); }
};

struct Folding {
  Classes ranks;
  Classes sites;
  Classes transfers;
  Classes links;
  Classes nodes;     // of the cluster; refined (and used) only where ranks share their host's cores
  Classes switches;  // that add (TransferTable::switches)
};

// Every object in a class of its own.
Folding NoFolding(const TransferTable& table, const Cluster& cluster, uint32_t ranks);

Folding Fold(const Schedule& schedule, const TransferTable& table, const Cluster& cluster,
             const Perturbation& perturbation = {});

enum class Way : uint8_t { kOwn, kDetour };

// How often a class of transfers crosses one link of each link class, on its own way or its detour:
// the uses in the quotient. By class of transfers; links are link classes.
std::vector<std::vector<LinkUse>> FoldedUses(const TransferTable& table, const Folding& folding,
                                             Way way);

}  // namespace rehearse
