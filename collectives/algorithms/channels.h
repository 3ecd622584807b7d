// Channels: the rings over which a group of ranks runs its collectives, as NCCL would choose them.
//
// Inside a node: rings that together carry the most. For up to kSearchedRanks members every
// Hamiltonian cycle over the group's routes is considered; cycles are packed greedily, widest
// bottleneck first, in quarters of the best single ring, until no link has a quarter left; if that
// leaves links unused, a bounded number of seeded restarts and the rings that use every pair once
// (collectives/algorithms/ring_cover.h) are tried as well. If no ring keeps to NVLinks, members
// that have none in common may send through a third member, as NCCL does on cube meshes. On a full
// NVLink mesh of four this finds all six directed cycles at half a link each; on an NVSwitch one
// ring already fills every port. If some rings keep to NVLinks, others are not tried: NCCL takes a
// longer kind of path only while it has found no ring. Larger groups inside a node, and groups with
// one member per node (a torus), take one ring in the order of the group or a shorter one
// (collectives/algorithms/ring_order.h). On xGMI links that do not join all pairs there is one
// ring, both ways, though others have room: eight dies of MI250X reach 135 GB/s (rccl-tests on
// Frontier, ggracelii/mpich-rccl 4376c4fa), which is as much as these two carry.
// Across nodes: one channel for each member of the node that has the fewest; all members of a node
// follow each other, so that the fewest possible edges cross nodes, and channel c rotates the order
// within every node by c, so that every NIC has a channel. The order is that of the group; where
// pairs have links of their own, it is one over which the channels use all of these
// (collectives/algorithms/linked_ring.h): the widest ring of links, which odd channels go round the
// other way, or, where all pairs have one, zigzags. Where machines are cabled rail by rail, a
// channel keeps to one rail (Router::AlongRail); elsewhere a node is entered and left through
// different NICs. Zigzags keep to a rail without its help: they go back in every second node. Where
// a machine lacks NICs that others have, channels that would crowd on those it has left are left
// out, before a limit counts them.
//
// A cluster may say which rings its machines use (topology/files/given_rings.h); groups of whole
// machines then use these.
//
// Deterministic: the same routes give the same channels, ties by lexicographic order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/program.h"
#include "topology/fabrics/router.h"

namespace rehearse {

inline constexpr uint32_t kSearchedRanks = 8;
inline constexpr uint32_t kMostChannels = 24;

struct Channel {
  std::vector<uint32_t> ranks;      // the ring: each sends to the next, the last to the first
  double share = 1;                 // of the collective's bytes; the shares of a group sum to 1
  std::vector<const Route*> edges;  // edges[i] is from ranks[i] to the next
  // Equal parts that an edge's bytes are cut into (Router::ways); `uses` counts parts.
  uint32_t ways = 1;
  std::vector<LinkUse> uses;  // all edges together: how often each link is crossed, by link index
  // The same with the edges' detours. It is empty if there are none, or if an edge lacks its own.
  std::vector<LinkUse> detour;
  // Routes through a third member, which edges point to; null if there are none.
  std::shared_ptr<const std::vector<Route>> relays;
  BytesPerSecond rate;  // of each edge, all parts together; see SetIdleRates
};

class ChannelFinder {
 public:
  // The router keeps the routes that the channels point to, and must outlive them.
  explicit ChannelFinder(Router& router) : router_(router) {}

  // The channels of one group (at least two ranks, all different; CHECKed). `limit` > 0 caps their
  // number; `phase` is that of the routes (Router::Between). Remembers what it found: equal groups
  // on other nodes cost only a look-up.
  std::vector<Channel> Find(const std::vector<uint32_t>& group, uint32_t limit = 0,
                            uint64_t phase = 0);

 private:
  struct WeightedRing {
    std::vector<uint32_t> ring;  // positions in the group
    uint32_t weight = 1;
    bool relays = false;  // members without a common NVLink send through a third
  };
  std::vector<WeightedRing> RingsInsideNode(const std::vector<uint32_t>& ranks);

  Router& router_;
  std::map<std::vector<double>, std::vector<WeightedRing>> found_;
};

// Sets the rate that each channel's edges have when only these channels are active (max-min).
void SetIdleRates(const Cluster& cluster, std::vector<Channel>& channels);

// What the group's channels carry together on an idle machine: the busbw of a long ring collective.
BytesPerSecond TotalRate(const Cluster& cluster, std::vector<Channel> channels);

}  // namespace rehearse
