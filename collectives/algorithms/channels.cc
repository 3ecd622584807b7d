#include "collectives/algorithms/channels.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>

#include "collectives/algorithms/crowded_places.h"
#include "collectives/algorithms/linked_ring.h"
#include "collectives/algorithms/ring_cover.h"
#include "collectives/algorithms/ring_order.h"
#include "sim/base/error.h"
#include "sim/engine/max_min.h"

namespace rehearse {
namespace {

using Ring = std::vector<uint32_t>;  // positions in the group

// The way from one rank to another through that member of the group to which both have the widest
// NVLinks, as NCCL goes on a cube mesh (its path NVB). There is none where the two have NVLinks of
// their own, or where no member has NVLinks to both.
std::optional<Route> RelayBetween(Router& router, const std::vector<uint32_t>& ranks, uint32_t a,
                                  uint32_t b) {
  const Cluster& cluster = router.cluster();
  if (IsOverNvLinks(cluster, router.Between(a, b))) return std::nullopt;
  std::optional<Route> best;
  for (const uint32_t c : ranks) {
    if (c == a || c == b) continue;
    const Route& to = router.Between(a, c);
    const Route& from = router.Between(c, b);
    if (!IsOverNvLinks(cluster, to) || !IsOverNvLinks(cluster, from)) continue;
    const BytesPerSecond bandwidth = std::min(to.bandwidth, from.bandwidth);
    if (best && bandwidth <= best->bandwidth) continue;
    best = Route{to.links, to.latency + from.latency, bandwidth, false, {}, {}};
    best->links.insert(best->links.end(), from.links.begin(), from.links.end());
  }
  return best;
}

// The links of a group's routes, numbered densely, with what is left of each.
class GroupLinks {
 public:
  GroupLinks(Router& router, const std::vector<uint32_t>& ranks, bool relays)
      : size_(ranks.size()) {
    std::map<uint32_t, uint32_t> dense;
    pairs_.resize(size_ * size_);
    for (size_t a = 0; a < size_; ++a) {
      for (size_t b = 0; b < size_; ++b) {
        if (a == b) continue;
        const std::optional<Route> relay =
            relays ? RelayBetween(router, ranks, ranks[a], ranks[b]) : std::nullopt;
        has_relays_ = has_relays_ || relay.has_value();
        for (const uint32_t link :
             relay ? relay->links : router.Between(ranks[a], ranks[b]).links) {
          const auto [it, is_new] = dense.emplace(link, static_cast<uint32_t>(free_.size()));
          if (is_new) free_.push_back(router.cluster().Link(link).Capacity().value());
          pairs_[a * size_ + b].push_back(it->second);
        }
      }
    }
    load_.assign(free_.size(), 0);
  }

  // The rate that one more ring could have: min over its links of free capacity /
  // crossings. `total` receives the free capacity along the ring, to prefer rings over
  // untouched links among equals.
  double Bottleneck(const Ring& ring, double* total) {
    double bottleneck = std::numeric_limits<double>::infinity();
    *total = 0;
    ForEachLink(ring, [&](uint32_t link, uint32_t times) {
      *total += free_[link];
      bottleneck = std::min(bottleneck, free_[link] / times);
    });
    return bottleneck;
  }

  void Take(const Ring& ring, double rate) {
    for (size_t i = 0; i < ring.size(); ++i) {
      for (const uint32_t link : Pair(ring, i)) free_[link] -= rate;
    }
  }

  // The least, over the members, of what all links that a member's paths begin with can carry: no
  // rings carry more.
  double LeavingAMember() const {
    double least = std::numeric_limits<double>::infinity();
    for (size_t a = 0; a < size_; ++a) {
      std::vector<uint32_t> first;
      for (size_t b = 0; b < size_; ++b) {
        if (a != b) first.push_back(pairs_[a * size_ + b].front());
      }
      std::sort(first.begin(), first.end());
      first.erase(std::unique(first.begin(), first.end()), first.end());
      double sum = 0;
      for (const uint32_t link : first) sum += free_[link];
      least = std::min(least, sum);
    }
    return least;
  }

  bool has_relays() const { return has_relays_; }
  const std::vector<double>& free() const { return free_; }

  // Calls visit(link, times) for each link of the ring, in the order in which the ring meets them.
  template <typename Visit>
  void ForEachLink(const Ring& ring, Visit visit) {
    Count(ring, +1);
    for (const uint32_t link : touched_) visit(link, static_cast<uint32_t>(load_[link]));
    Count(ring, -1);
  }

  // Two groups with the same signature have the same channels.
  std::vector<double> Signature() const {
    std::vector<double> signature = {static_cast<double>(size_)};
    for (const auto& pair : pairs_) {
      signature.push_back(static_cast<double>(pair.size()));
      signature.insert(signature.end(), pair.begin(), pair.end());
    }
    signature.insert(signature.end(), free_.begin(), free_.end());
    return signature;
  }

 private:
  const std::vector<uint32_t>& Pair(const Ring& ring, size_t i) const {
    return pairs_[ring[i] * size_ + ring[(i + 1) % ring.size()]];
  }
  void Count(const Ring& ring, int sign) {
    if (sign > 0) touched_.clear();
    for (size_t i = 0; i < ring.size(); ++i) {
      for (const uint32_t link : Pair(ring, i)) {
        if (sign > 0 && load_[link] == 0) touched_.push_back(link);
        load_[link] += sign;
      }
    }
  }

  size_t size_;
  bool has_relays_ = false;
  std::vector<std::vector<uint32_t>> pairs_;
  std::vector<double> free_;
  std::vector<int> load_;
  std::vector<uint32_t> touched_;
};

// Every directed Hamiltonian cycle of `size` ranks once, in lexicographic order, starting at 0.
std::vector<Ring> AllRings(uint32_t size) {
  std::vector<Ring> rings;
  Ring ring(size);
  std::iota(ring.begin(), ring.end(), 0u);
  do {
    rings.push_back(ring);
  } while (std::next_permutation(ring.begin() + 1, ring.end()));
  return rings;
}

// Those that keep to NVLinks from each member to the next.
std::vector<Ring> OverNvLinks(Router& router, const std::vector<uint32_t>& ranks,
                              const std::vector<Ring>& rings) {
  const size_t size = ranks.size();
  std::vector<bool> is_over(size * size);
  for (size_t a = 0; a < size; ++a)
    for (size_t b = 0; b < size; ++b)
      is_over[a * size + b] =
          a != b && IsOverNvLinks(router.cluster(), router.Between(ranks[a], ranks[b]));
  std::vector<Ring> over;
  std::copy_if(rings.begin(), rings.end(), std::back_inserter(over), [&](const Ring& ring) {
    for (size_t i = 0; i < size; ++i)
      if (!is_over[ring[i] * size + ring[(i + 1) % size]]) return false;
    return true;
  });
  return over;
}

// Which rings cross which links, and how often.
struct RingLinks {
  struct Crossed {
    uint32_t which;  // link or ring
    uint32_t times;
  };

  RingLinks(GroupLinks links, const std::vector<Ring>& rings)
      : free(links.free()), rings_of_link(free.size()) {
    first.reserve(rings.size() + 1);
    widths.reserve(rings.size());
    for (uint32_t ring = 0; ring < rings.size(); ++ring) {
      first.push_back(static_cast<uint32_t>(links_of_ring.size()));
      double width = std::numeric_limits<double>::infinity();
      links.ForEachLink(rings[ring], [&](uint32_t link, uint32_t times) {
        links_of_ring.push_back({link, times});
        rings_of_link[link].push_back({ring, times});
        width = std::min(width, free[link] / times);
      });
      widths.push_back(width);
    }
    first.push_back(static_cast<uint32_t>(links_of_ring.size()));
  }

  std::span<const Crossed> Of(uint32_t ring) const {
    return std::span(links_of_ring).subspan(first[ring], first[ring + 1] - first[ring]);
  }

  std::vector<double> free;    // of links, before anything is packed
  std::vector<double> widths;  // of rings, before anything is packed (GroupLinks::Bottleneck)
  std::vector<uint32_t> first;
  std::vector<Crossed> links_of_ring;
  std::vector<std::vector<Crossed>> rings_of_link;
};

// The widths of thousands of rings while some are packed. What is free only becomes less, so only
// rings that share a link with the one that is taken become narrower.
class RingWidths {
 public:
  explicit RingWidths(const RingLinks& links)
      : links_(links), free_(links.free), widths_(links.widths) {}

  size_t size() const { return widths_.size(); }
  double Of(uint32_t ring) const { return widths_[ring]; }
  double Widest() const { return *std::max_element(widths_.begin(), widths_.end()); }
  // The sum that GroupLinks::Bottleneck puts into `total`.
  double Total(uint32_t ring) const {
    double total = 0;
    for (const auto& [link, times] : links_.Of(ring)) total += free_[link];
    return total;
  }
  void Take(uint32_t ring, double rate) {
    for (const auto& [link, times] : links_.Of(ring)) {
      for (uint32_t time = 0; time < times; ++time) free_[link] -= rate;
      for (const RingLinks::Crossed& other : links_.rings_of_link[link])
        widths_[other.which] = std::min(widths_[other.which], free_[link] / other.times);
    }
  }

 private:
  const RingLinks& links_;
  std::vector<double> free_;
  std::vector<double> widths_;
};

// A packing says how many units each ring gets, and what they carry together.
struct Packing {
  std::vector<uint32_t> weight;
  double rate = 0;
  uint32_t widest = 0;  // the best single ring, and what it carries alone
  double widest_rate = 0;
};

// Rings that differ by less are equally wide: libraries know bandwidths only from short lists
// (collectives/nccl/nccl_search.h), whose closest neighbours are 5 % apart, and nobody lays rings
// anew round a link that is a little slower than the others.
constexpr double kTolerance = 5e-3;
constexpr uint32_t kRestarts = 48;

// Keeps taking the widest ring, one unit (a part of the best single ring) at a time, until no unit
// is left anywhere. Of equally wide rings, seed 0 takes the one over the least used links, other
// seeds any. Units are shares of a ring because whole rings may not fit: four ranks that are joined
// all to all have no three disjoint rings, but all six at half a link each carry as much.
Packing PackGreedily(const RingLinks& links, double part, uint64_t seed) {
  RingWidths rings(links);
  std::mt19937_64 random(seed);
  Packing packing;
  packing.weight.assign(rings.size(), 0);
  double unit = 0;
  for (uint32_t packed = 0; packed < kMostChannels; ++packed) {
    // Against the widest of all, so that a row of rings each a little narrower than the one before
    // does not lead down to a narrow one.
    const double widest = rings.Widest();
    uint32_t best = 0;
    double best_bottleneck = 0;
    double best_total = 0;
    uint32_t equals = 0;
    for (uint32_t i = 0; i < rings.size(); ++i) {
      const double bottleneck = rings.Of(i);
      if (bottleneck < widest * (1 - kTolerance)) continue;
      ++equals;
      const double total = seed == 0 ? rings.Total(i) : 0;
      const bool preferred =
          seed == 0 ? total > best_total * (1 + kTolerance) : random() % equals == 0;
      if (equals == 1 || preferred) {
        best = i;
        best_bottleneck = bottleneck;
        best_total = total;
      }
    }
    if (packed == 0) {
      unit = best_bottleneck * part;
      packing.widest = best;
      packing.widest_rate = best_bottleneck;
    }
    if (best_bottleneck < unit * (1 - kTolerance)) break;
    rings.Take(best, unit);
    ++packing.weight[best];
    packing.rate += unit;
  }
  return packing;
}

// The rings of a full mesh, each as wide as it can still be.
Packing PackAllPairs(GroupLinks links, const std::vector<Ring>& rings) {
  Packing packing;
  packing.weight.assign(rings.size(), 0);
  for (const Ring& ring : RingsOfAllPairs(static_cast<uint32_t>(rings.front().size()))) {
    double total = 0;
    const double rate = links.Bottleneck(ring, &total);
    if (packing.rate > 0 && rate < packing.widest_rate * (1 - kTolerance)) return {};
    packing.widest_rate = rate;
    links.Take(ring, rate);
    packing.rate += rate;
    const auto it = std::find(rings.begin(), rings.end(), ring);
    if (it == rings.end()) return {};
    ++packing.weight[static_cast<size_t>(it - rings.begin())];
  }
  return packing;
}

// The best packing found: the greedy one or, if that leaves a member's links partly unused, the
// best of a bounded number of seeded restarts. If a single ring carries as much, it is taken.
Packing PackRings(const GroupLinks& links, const std::vector<Ring>& rings) {
  const double bound = links.LeavingAMember() * (1 - 1e-6);
  const RingLinks crossed(links, rings);
  Packing best = PackGreedily(crossed, 0.25, 0);
  for (uint64_t seed = 1; seed <= kRestarts && best.rate < bound; ++seed) {
    Packing other = PackGreedily(crossed, seed % 2 == 0 ? 0.25 : 0.5, seed);
    if (other.rate > best.rate * (1 + kTolerance)) best = std::move(other);
  }
  if (best.rate < bound && rings.front().size() <= kMostCovered) {
    Packing mesh = PackAllPairs(links, rings);
    if (mesh.rate > best.rate * (1 + kTolerance)) best = std::move(mesh);
  }
  if (best.rate <= best.widest_rate * (1 + kTolerance)) {
    best.weight.assign(rings.size(), 0);
    best.weight[best.widest] = 1;
    best.rate = best.widest_rate;
  }
  return best;
}

std::vector<Ring> RingsAcrossNodes(Router& router, const std::vector<uint32_t>& ranks,
                                   std::vector<std::vector<uint32_t>> members) {
  size_t channels = members.front().size();
  for (const auto& node : members) channels = std::min(channels, node.size());
  channels = std::min<size_t>(channels, kMostChannels);
  const std::vector<Joined> joined = SortAlongLinks(router, ranks, &members);
  const bool are_meshes = std::all_of(joined.begin(), joined.end(),
                                      [](Joined machine) { return machine == Joined::kAsMesh; });
  const bool are_equal = std::all_of(members.begin(), members.end(), [&](const auto& machine) {
    return machine.size() == members.front().size();
  });
  if (are_meshes && are_equal && router.HasMachinesApart() && members.front().size() % 2 == 0) {
    const std::vector<uint32_t> order = WithNeighboursOpposite(router, ranks, members);
    for (std::vector<uint32_t>& machine : members) {
      const std::vector<uint32_t> given = machine;
      for (size_t i = 0; i < order.size(); ++i) machine[i] = given[order[i]];
    }
  }
  std::vector<Ring> rings;
  for (size_t channel = 0; channel < channels; ++channel) {
    Ring ring;
    for (size_t at = 0; at < members.size(); ++at) {
      const auto begin = static_cast<std::ptrdiff_t>(ring.size());
      AppendInTurn(members[at], channel, joined[at], channel, &ring);
      // Back in every second machine, so that the ring enters it on the rail on which it comes.
      if (joined[at] == Joined::kAsMesh && at % 2 == 1)
        std::reverse(ring.begin() + begin, ring.end());
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

// The positions of the group by node, nodes in the order in which the group meets them.
std::vector<std::vector<uint32_t>> MembersByNode(const Cluster& cluster,
                                                 const std::vector<uint32_t>& ranks) {
  std::vector<std::vector<uint32_t>> members;
  std::map<uint32_t, size_t> place;
  uint32_t last_node = 0;
  size_t last_place = 0;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    const uint32_t node = cluster.NodeIndexOf(ranks[i]);
    if (i == 0 || node != last_node) {  // rare: neighbours share a node
      const auto [it, is_new] = place.emplace(node, members.size());
      if (is_new) members.emplace_back();
      last_node = node;
      last_place = it->second;
    }
    members[last_place].push_back(i);
  }
  return members;
}

// Whether the group has all devices of each of its machines, as given rings do.
bool AreWhole(const std::vector<std::vector<uint32_t>>& members, const Cluster& cluster) {
  return std::all_of(members.begin(), members.end(), [&](const std::vector<uint32_t>& node) {
    return node.size() == cluster.rings().front().size();
  });
}

// The cluster's own rings of whole machines, one machine after the other; positions in the group.
std::vector<Ring> GivenRings(const Cluster& cluster, const std::vector<uint32_t>& ranks,
                             std::vector<std::vector<uint32_t>> members) {
  for (std::vector<uint32_t>& node : members)
    std::sort(node.begin(), node.end(),
              [&](uint32_t a, uint32_t b) { return ranks[a] < ranks[b]; });
  std::vector<Ring> rings;
  for (const std::vector<uint32_t>& given : cluster.rings()) {
    Ring& ring = rings.emplace_back();
    for (const std::vector<uint32_t>& node : members)
      for (const uint32_t device : given) ring.push_back(node[device]);
  }
  return rings;
}

// How often each link is crossed, by link index.
std::vector<LinkUse> Counted(std::vector<LinkUse> crossings) {
  std::sort(crossings.begin(), crossings.end(),
            [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  std::vector<LinkUse> uses;
  for (const LinkUse& crossing : crossings) {
    if (!uses.empty() && uses.back().link == crossing.link) {
      uses.back().multiplicity += crossing.multiplicity;
    } else {
      uses.push_back(crossing);
    }
  }
  return uses;
}

void AddCrossings(const Route& route, uint32_t ways, std::vector<LinkUse>* crossings) {
  ForEachCrossing(route, ways, [&](uint32_t link, uint32_t parts) {
    crossings->push_back({LinkId(link), parts});
  });
}

// How often all edges of a ring together cross each link.
std::vector<LinkUse> UsesOf(const std::vector<const Route*>& edges, uint32_t ways) {
  std::vector<LinkUse> crossings;
  for (const Route* route : edges) AddCrossings(*route, ways, &crossings);
  return Counted(std::move(crossings));
}

// The same with the detours round failed links. It is empty if no link has failed, or if nothing
// leads round one of them.
std::vector<LinkUse> DetourOf(const Router& router, const std::vector<const Route*>& edges) {
  std::vector<LinkUse> crossings;
  bool fails = false;
  for (const Route* route : edges) {
    if (!router.MeetsFailure(*route)) {
      AddCrossings(*route, router.ways(), &crossings);
      continue;
    }
    if (route->detour.empty()) return {};
    for (const uint32_t link : route->detour) crossings.push_back({LinkId(link), router.ways()});
    fails = true;
  }
  return fails ? Counted(std::move(crossings)) : std::vector<LinkUse>();
}

// How many parts of all channels cross each link, as a share of what it carries: the largest says
// when the slowest channel is done.
class ChannelLoads {
 public:
  ChannelLoads(const Cluster& cluster, const std::vector<Channel>& channels) {
    std::map<uint32_t, uint32_t> dense;
    for (const Channel& channel : channels) {
      std::vector<std::pair<uint32_t, double>>& own = of_channel_.emplace_back();
      for (const LinkUse& use : channel.uses) {
        const auto [it, is_new] =
            dense.emplace(use.link.index(), static_cast<uint32_t>(loads_.size()));
        if (is_new) loads_.push_back(0);
        const BytesPerSecond capacity = cluster.Link(use.link.index()).Capacity();
        own.emplace_back(it->second, use.multiplicity / (channel.ways * capacity.value()));
      }
    }
    for (size_t channel = 0; channel < channels.size(); ++channel) Add(channel, +1);
  }

  double Largest() const { return *std::max_element(loads_.begin(), loads_.end()); }
  void Add(size_t channel, int sign) {
    for (const auto& [link, load] : of_channel_[channel]) loads_[link] += sign * load;
  }
  // How many of the links with the largest load the channel crosses.
  uint32_t Crowded(size_t channel) const {
    const double largest = Largest();
    uint32_t crowded = 0;
    for (const auto& [link, load] : of_channel_[channel])
      crowded += loads_[link] > largest * (1 - 1e-6) ? 1 : 0;
    return crowded;
  }

 private:
  std::vector<std::vector<std::pair<uint32_t, double>>> of_channel_;  // dense link, load
  std::vector<double> loads_;
};

// Where a machine has lost a NIC, two channels meet on another, and all wait for these two: NCCL's
// search finds as many channels as there are NICs. Takes away one after the other of those on the
// fullest links, and keeps as many as carry the most together; of equally good numbers the largest.
// Where NICs are lost at several places, only the last one taken away makes the others faster.
void LeaveOutCrowded(const Cluster& cluster, std::vector<Channel>* channels) {
  constexpr double kGain = 1 + 1e-6;
  ChannelLoads loads(cluster, *channels);
  std::vector<size_t> left(channels->size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> best = left;
  double best_rate = static_cast<double>(left.size()) / loads.Largest();
  while (left.size() > 1) {
    const auto worst = std::max_element(left.begin(), left.end(), [&](size_t a, size_t b) {
      return loads.Crowded(a) < loads.Crowded(b);
    });
    loads.Add(*worst, -1);
    left.erase(worst);
    const double rate = static_cast<double>(left.size()) / loads.Largest();
    if (rate <= kGain * best_rate) continue;
    best = left;
    best_rate = rate;
  }
  std::vector<Channel> kept;
  for (const size_t channel : best) kept.push_back(std::move((*channels)[channel]));
  *channels = std::move(kept);
}

}  // namespace

void SetIdleRates(const Cluster& cluster, std::vector<Channel>& channels) {
  std::map<uint32_t, uint32_t> dense;
  std::vector<double> capacities;
  std::vector<std::vector<LinkUse>> uses(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    for (const LinkUse& use : channels[i].uses) {
      const auto [it, is_new] =
          dense.emplace(use.link.index(), static_cast<uint32_t>(capacities.size()));
      if (is_new) capacities.push_back(cluster.Link(use.link.index()).Capacity().value());
      uses[i].push_back({LinkId(it->second), use.multiplicity});
    }
  }
  MaxMinProblem problem;
  problem.capacities = capacities;
  for (const auto& use : uses) problem.flows.emplace_back(use);
  const std::vector<double> rates = SolveMaxMin(problem);
  for (size_t i = 0; i < channels.size(); ++i)
    channels[i].rate = BytesPerSecond(rates[i] * channels[i].ways);
}

std::vector<ChannelFinder::WeightedRing> ChannelFinder::RingsInsideNode(
    const std::vector<uint32_t>& ranks) {
  const uint32_t size = static_cast<uint32_t>(ranks.size());
  if (size == 2 || size > kSearchedRanks) {
    Ring ring(size);
    std::iota(ring.begin(), ring.end(), 0u);
    return {{ring, 1}};
  }
  const GroupLinks links(router_, ranks, /*relays=*/false);
  std::vector<WeightedRing>& result = found_[links.Signature()];
  if (!result.empty()) return result;
  const LinkedRing linked = WidestLinkedRing(router_, ranks);
  if (linked.is_xgmi && !linked.ring.empty()) {
    // Packing would find room for more rings. That RCCL keeps to one, both ways, is inferred from
    // measured bandwidths (collectives/algorithms/channels.h), not read in its source.
    Ring back = linked.ring;
    std::reverse(back.begin() + 1, back.end());
    result = {{linked.ring, 1}, {std::move(back), 1}};
    return result;
  }
  std::vector<Ring> rings = AllRings(size);
  std::vector<Ring> over_nvlinks = OverNvLinks(router_, ranks, rings);
  const bool are_over_nvlinks = !over_nvlinks.empty();
  if (are_over_nvlinks) rings = std::move(over_nvlinks);
  Packing packing = PackRings(links, rings);
  bool relays = false;
  if (!are_over_nvlinks && packing.rate < links.LeavingAMember() * (1 - 1e-6)) {
    const GroupLinks through(router_, ranks, /*relays=*/true);
    if (through.has_relays()) {
      Packing relayed = PackRings(through, rings);
      relays = relayed.rate > packing.rate * (1 + kTolerance);
      if (relays) packing = std::move(relayed);
    }
  }
  for (uint32_t i = 0; i < rings.size(); ++i) {
    if (packing.weight[i] > 0) result.push_back({rings[i], packing.weight[i], relays});
  }
  return result;
}

std::vector<Channel> ChannelFinder::Find(const std::vector<uint32_t>& group, uint32_t limit,
                                         uint64_t phase) {
  CHECK_GE(group.size(), 2u);
  const Cluster& cluster = router_.cluster();
  std::vector<uint32_t> ranks = group;
  std::vector<std::vector<uint32_t>> members = MembersByNode(cluster, ranks);
  const bool one_each = members.size() == ranks.size();
  if (ranks.size() > kSearchedRanks && (one_each || members.size() == 1)) {
    ranks = OrderRing(router_, ranks, phase);
    members = MembersByNode(cluster, ranks);
  }
  std::vector<WeightedRing> rings;
  const bool is_inside = members.size() == 1;
  const bool are_given = !cluster.rings().empty() && AreWhole(members, cluster);
  if (are_given) {
    for (Ring& ring : GivenRings(cluster, ranks, std::move(members))) {
      const auto same = std::find_if(rings.begin(), rings.end(),
                                     [&](const WeightedRing& one) { return one.ring == ring; });
      if (same != rings.end())
        ++same->weight;
      else
        rings.push_back({std::move(ring), 1});
    }
  } else if (is_inside) {
    rings = RingsInsideNode(ranks);
  } else {
    for (Ring& ring : RingsAcrossNodes(router_, ranks, std::move(members)))
      rings.push_back({std::move(ring), 1});
  }
  const bool may_crowd = !is_inside && !are_given && router_.HasMachinesApart();
  if (!may_crowd && limit > 0 && rings.size() > limit) rings.resize(limit);
  uint32_t weights = 0;
  for (const WeightedRing& ring : rings) weights += ring.weight;

  std::vector<Channel> channels;
  for (const WeightedRing& weighted : rings) {
    Channel channel;
    channel.share = static_cast<double>(weighted.weight) / weights;
    for (const uint32_t position : weighted.ring) channel.ranks.push_back(ranks[position]);
    auto relays = std::make_shared<std::vector<Route>>();
    relays->reserve(channel.ranks.size());  // must not move, as edges point into it
    for (size_t i = 0; i < channel.ranks.size(); ++i) {
      const uint32_t from = channel.ranks[i];
      const uint32_t to = channel.ranks[(i + 1) % channel.ranks.size()];
      const Route* route = &router_.AlongRail(from, to, phase);
      if (weighted.relays) {
        if (std::optional<Route> relay = RelayBetween(router_, ranks, from, to)) {
          relays->push_back(std::move(*relay));
          route = &relays->back();
        }
      }
      channel.edges.push_back(route);
    }
    if (!relays->empty()) channel.relays = std::move(relays);
    channel.ways = router_.ways();
    channel.uses = UsesOf(channel.edges, channel.ways);
    channel.detour = DetourOf(router_, channel.edges);
    channels.push_back(std::move(channel));
  }
  if (may_crowd) {
    LeaveOutCrowded(cluster, &channels);
    if (limit > 0 && channels.size() > limit) channels.resize(limit);
    for (Channel& channel : channels) channel.share = 1.0 / static_cast<double>(channels.size());
  }
  return channels;
}

BytesPerSecond TotalRate(const Cluster& cluster, std::vector<Channel> channels) {
  SetIdleRates(cluster, channels);
  // Each channel has its share of the bytes, so the slowest relative to its share sets the pace.
  BytesPerSecond total(std::numeric_limits<double>::infinity());
  for (const Channel& channel : channels) total = std::min(total, channel.rate / channel.share);
  return total;
}

}  // namespace rehearse
