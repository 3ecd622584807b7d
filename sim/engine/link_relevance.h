// Which links can hold a flow back at all, worked out once for a program.
//
// The anchor of a use set is its tightest link, the smallest capacity / multiplicity (of equal ones
// the first in the program). All flows over sets with anchor m together carry at most
//   capacity_m · max over these sets of multiplicity_l / multiplicity_m
// over another link l. If this, summed over the anchors of all sets that cross l, is within the
// capacity of l, then l is redundant: the anchors' constraints imply its own, and the max-min rates
// are the same without it, whatever moves when. A full-bisection core behind slower NICs is
// redundant, and so are all but the narrowest link of a ring that has its links to itself. So is a
// link if another is always at least as full, because each set that crosses the first takes as
// large a share of the other's capacity. Few are left of the thousands of cables over which a few
// hashed rings are scattered.
//
// A link that is neither an anchor nor redundant is lazy: it may hold flows back at times, but each
// of them has an anchor as well, so that the network can leave it out until it is overloaded
// (sim/engine/transfer_network.h). Links whose capacity changes over time are never redundant; as
// anchors they count with their largest capacity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/program.h"

namespace rehearse {

enum class LinkRole : uint8_t { kAnchor, kLazy, kRedundant };

struct LinkRelevance {
  std::vector<LinkRole> role;        // per link; those that no flow crosses are redundant
  std::vector<LinkUse> uses;         // of each use set: its anchors, then its lazy links
  std::vector<uint32_t> use_begin;   // per use set, one more at the end
  std::vector<uint32_t> lazy_begin;  // per use set
  bool has_lazy = false;

  std::span<const LinkUse> Anchors(uint32_t set) const {
    return {uses.data() + use_begin[set], uses.data() + lazy_begin[set]};
  }
  std::span<const LinkUse> Lazy(uint32_t set) const {
    return {uses.data() + lazy_begin[set], uses.data() + use_begin[set + 1]};
  }
  std::span<const LinkUse> All(uint32_t set) const {
    return {uses.data() + use_begin[set], uses.data() + use_begin[set + 1]};
  }
};

// O(uses·log(sets that cross a link)), and at most this many comparisons of two links.
inline constexpr size_t kMostComparisons = 1u << 22;
LinkRelevance FindRelevantLinks(const Program& program);

}  // namespace rehearse
