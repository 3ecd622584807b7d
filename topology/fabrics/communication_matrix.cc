#include "topology/fabrics/communication_matrix.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "topology/cluster/grid.h"
#include "topology/cluster/max_flow.h"

namespace rehearse {
namespace {

using Groups = std::vector<std::vector<uint32_t>>;

constexpr BytesPerSecond kInfinite(std::numeric_limits<double>::infinity());

// ---- Which groups? ------------------------------------------------------------------------------

// Disjoint sets of positions, joined pair by pair.
class Joined {
 public:
  explicit Joined(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }

  uint32_t Find(uint32_t position) {
    while (parent_[position] != position) position = parent_[position] = parent_[parent_[position]];
    return position;
  }

  // The smaller one stands for the set.
  void Join(uint32_t a, uint32_t b) {
    const uint32_t first = Find(a);
    const uint32_t second = Find(b);
    parent_[std::max(first, second)] = std::min(first, second);
  }

  // The sets in the order of their first members.
  Groups Sets() {
    Groups sets;
    std::vector<size_t> set_of(parent_.size());
    for (uint32_t position = 0; position < parent_.size(); ++position) {
      const uint32_t first = Find(position);
      if (first == position) {
        set_of[position] = sets.size();
        sets.emplace_back();
      }
      sets[set_of[first]].push_back(position);
    }
    return sets;
  }

 private:
  std::vector<uint32_t> parent_;
};

// Partitions of the positions 0 to n-1, each finer than the one before, except the coarsest (all)
// and the finest (singles).
std::vector<Groups> PartitionsByBandwidth(const PairwiseMatrix& pairs) {
  struct Pair {
    double bandwidth;
    uint32_t a, b;
  };
  const auto size = static_cast<uint32_t>(pairs.ranks.size());
  std::vector<Pair> order;
  for (uint32_t a = 0; a < size; ++a)
    for (uint32_t b = a + 1; b < size; ++b)
      order.push_back({std::min(pairs.bandwidth[a][b], pairs.bandwidth[b][a]).value(), a, b});
  std::stable_sort(order.begin(), order.end(),
                   [](const Pair& x, const Pair& y) { return x.bandwidth > y.bandwidth; });

  constexpr double kEqual = 1 - 1e-9;
  std::vector<Groups> partitions;
  Joined joined(size);
  for (size_t i = 0; i < order.size(); ++i) {
    joined.Join(order[i].a, order[i].b);
    if (i + 1 < order.size() && order[i + 1].bandwidth >= order[i].bandwidth * kEqual) continue;
    Groups sets = joined.Sets();
    if (sets.size() == 1) break;
    if (!partitions.empty() && partitions.back().size() == sets.size()) continue;
    const size_t first = sets.front().size();
    const auto has_size = [first](const auto& set) { return set.size() == first; };
    if (first > 1 && std::all_of(sets.begin(), sets.end(), has_size))
      partitions.push_back(std::move(sets));
  }
  std::reverse(partitions.begin(), partitions.end());
  return partitions;
}

std::vector<Groups> PartitionsOfGrid(const Grid& grid, uint32_t devices) {
  std::vector<Groups> partitions;
  uint32_t block = devices;
  for (size_t dimension = grid.sizes.size(); dimension-- > 1;) {
    block /= grid.sizes[dimension];
    Groups blocks(devices / block);
    for (uint32_t rank = 0; rank < devices; ++rank) blocks[rank / block].push_back(rank);
    partitions.push_back(std::move(blocks));
  }
  return partitions;
}

bool AreAllDevices(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  if (ranks.size() != cluster.device_count()) return false;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank] != rank) return false;
  return true;
}

// The partitions of the ranks, from all of them to each alone.
std::vector<Groups> Partitions(Router& router, const std::vector<uint32_t>& ranks) {
  const Cluster& cluster = router.cluster();
  const std::optional<Grid> grid = AreAllDevices(cluster, ranks) ? FindGrid(cluster) : std::nullopt;
  std::vector<Groups> partitions = grid ? PartitionsOfGrid(*grid, cluster.device_count())
                                        : PartitionsByBandwidth(Pairwise(router, ranks));
  for (Groups& groups : partitions)
    for (auto& group : groups)
      for (uint32_t& member : group) member = ranks[member];
  Groups singles;
  for (const uint32_t rank : ranks) singles.push_back({rank});
  partitions.insert(partitions.begin(), Groups{ranks});
  partitions.push_back(std::move(singles));
  return partitions;
}

// ---- How fast? ----------------------------------------------------------------------------------

class GroupFlows {
 public:
  explicit GroupFlows(Router& router)
      : router_(router), cluster_(router.cluster()), owners_(RouterOwners(cluster_)) {}

  // Over the routes from one set to another that avoid the routers of `others`.
  BytesPerSecond Between(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to,
                         const std::set<uint32_t>& others) {
    std::set<uint32_t> links;
    for (const uint32_t a : from) {
      for (const uint32_t b : to) {
        const Route& route = router_.Between(a, b);
        if (!PassesThrough(route, others)) links.insert(route.links.begin(), route.links.end());
      }
    }
    return MaxFlow(cluster_, {links.begin(), links.end()}, Devices(from), Devices(to));
  }

 private:
  bool PassesThrough(const Route& route, const std::set<uint32_t>& others) const {
    return std::any_of(route.links.begin(), route.links.end(), [&](uint32_t link) {
      const auto owner = owners_[cluster_.TargetOf(link)];
      return owner && others.count(*owner) > 0;
    });
  }

  std::vector<VertexId> Devices(const std::vector<uint32_t>& ranks) const {
    std::vector<VertexId> devices;
    for (const uint32_t rank : ranks) devices.push_back(cluster_.devices()[rank]);
    return devices;
  }

  Router& router_;
  const Cluster& cluster_;
  const std::vector<std::optional<uint32_t>> owners_;
};

// The ranks of all siblings but two.
std::set<uint32_t> Others(const Groups& siblings, size_t a, size_t b) {
  std::set<uint32_t> others;
  for (size_t i = 0; i < siblings.size(); ++i)
    if (i != a && i != b) others.insert(siblings[i].begin(), siblings[i].end());
  return others;
}

// Adds the groups that one parent has.
void AddSiblings(GroupFlows& flows, const Groups& siblings, CommunicationLayer* layer,
                 ProgressObserver& observer) {
  for (size_t i = 0; i < siblings.size(); ++i) {
    std::vector<uint32_t> rest;
    std::vector<BytesPerSecond> to(siblings.size());
    for (size_t j = 0; j < siblings.size(); ++j) {
      if (i == j) continue;
      rest.insert(rest.end(), siblings[j].begin(), siblings[j].end());
      to[j] = flows.Between(siblings[i], siblings[j], Others(siblings, i, j));
      const double share = static_cast<double>(j) / static_cast<double>(siblings.size());
      observer.Done(static_cast<double>(layer->groups.size()) + share);
    }
    layer->group_bandwidth.push_back(flows.Between(siblings[i], rest, {}));
    layer->point_to_point.push_back(std::move(to));
    layer->groups.push_back(siblings[i]);
  }
}

// ---- What does an all-reduce find? --------------------------------------------------------------

// Of `used` members of each set of siblings that are `stride` apart, the worst.
BytesPerSecond LayerBandwidth(const CommunicationLayer& layer, uint32_t used, uint32_t stride) {
  BytesPerSecond worst = kInfinite;
  for (uint32_t group = 0; group < layer.groups.size(); ++group) {
    BytesPerSecond reached = layer.group_bandwidth[group];
    if (used < layer.siblings) {
      BytesPerSecond exchanged;
      const uint32_t position = group % layer.siblings;
      const uint32_t block = used * stride;
      for (uint32_t i = 0; i < used; ++i)
        exchanged +=
            layer.point_to_point[group][position / block * block + position % stride + i * stride];
      reached = std::min(reached, exchanged);
    }
    worst = std::min(worst, reached);
  }
  return worst;
}

// ---- Halves -------------------------------------------------------------------------------------

BytesPerSecond FlowBetweenHalves(const Cluster& cluster, const std::vector<bool>& is_first) {
  std::vector<uint32_t> links(cluster.link_count());
  std::iota(links.begin(), links.end(), 0u);
  std::vector<VertexId> first;
  std::vector<VertexId> second;
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
    (is_first[rank] ? first : second).push_back(cluster.devices()[rank]);
  return std::min(MaxFlow(cluster, links, first, second), MaxFlow(cluster, links, second, first));
}

}  // namespace

PairwiseMatrix Pairwise(Router& router, const std::vector<uint32_t>& ranks,
                        ProgressObserver& observer) {
  observer.Begin("finding routes", "devices", ranks.size());
  PairwiseMatrix matrix;
  matrix.ranks = ranks;
  matrix.bandwidth.assign(ranks.size(), std::vector<BytesPerSecond>(ranks.size()));
  matrix.latency.assign(ranks.size(), std::vector<Seconds>(ranks.size()));
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = 0; j < ranks.size(); ++j) {
      if (i == j) continue;
      const Route& route = router.Between(ranks[i], ranks[j]);
      matrix.bandwidth[i][j] = route.bandwidth;
      matrix.latency[i][j] = route.latency;
    }
    observer.Done(static_cast<double>(i + 1));
  }
  return matrix;
}

CommunicationMatrix HierarchicalMatrix(Router& router, const std::vector<uint32_t>& ranks,
                                       ProgressObserver& observer) {
  const std::vector<Groups> partitions = Partitions(router, ranks);
  GroupFlows flows(router);
  CommunicationMatrix matrix;
  for (size_t i = 1; i < partitions.size(); ++i) {
    const Groups& parents = partitions[i - 1];
    CommunicationLayer layer;
    layer.siblings = static_cast<uint32_t>(partitions[i].size() / parents.size());
    observer.Begin(fmt::format("flows of layer {} of {}", i, partitions.size() - 1), "groups",
                   partitions[i].size());
    for (const auto& parent : parents) {
      const std::set<uint32_t> members(parent.begin(), parent.end());
      Groups siblings;
      for (const auto& group : partitions[i])
        if (members.count(group.front()) > 0) siblings.push_back(group);
      AddSiblings(flows, siblings, &layer, observer);
    }
    matrix.layers.push_back(std::move(layer));
  }
  return matrix;
}

MeshBandwidths AllReduceBandwidths(const CommunicationMatrix& matrix, uint32_t d1, uint32_t d2) {
  MeshBandwidths result{kInfinite, kInfinite};
  uint32_t left1 = d1;  // what is left of the first axis to lay on layers
  uint32_t left2 = d2;
  for (const CommunicationLayer& layer : matrix.layers) {
    const uint32_t used1 = std::min(left1, layer.siblings);
    const uint32_t used2 = layer.siblings / used1;
    CHECK_EQ(used1 * used2, layer.siblings);
    CHECK_EQ(left1 % used1, 0u);
    CHECK_EQ(left2 % used2, 0u);
    left1 /= used1;
    left2 /= used2;
    if (used1 > 1) result.first = std::min(result.first, LayerBandwidth(layer, used1, used2) / d2);
    if (used2 > 1) result.second = std::min(result.second, LayerBandwidth(layer, used2, 1));
  }
  CHECK_EQ(left1, 1u);
  CHECK_EQ(left2, 1u);
  return result;
}

std::optional<BytesPerSecond> BisectionBandwidth(const Cluster& cluster) {
  const uint32_t size = cluster.device_count();
  if (size < 2) return std::nullopt;
  BytesPerSecond narrowest = kInfinite;
  const auto try_halves = [&](const auto& is_first) {
    std::vector<bool> halves(size);
    for (uint32_t rank = 0; rank < size; ++rank) halves[rank] = is_first(rank);
    narrowest = std::min(narrowest, FlowBetweenHalves(cluster, halves));
  };
  std::set<uint32_t> starts;
  for (uint32_t eighths = 0; eighths < 4; ++eighths)
    starts.insert(static_cast<uint32_t>(uint64_t{size} * eighths / 8));
  for (const uint32_t start : starts)
    try_halves([&](uint32_t rank) { return (rank + size - start) % size < size / 2; });
  if (const std::optional<Grid> grid = FindGrid(cluster)) {
    for (size_t i = 0; i < grid->sizes.size(); ++i)
      if (grid->sizes[i] % 2 == 0)
        try_halves([&](uint32_t rank) { return grid->Coordinate(rank, i) < grid->sizes[i] / 2; });
  }
  return narrowest;
}

}  // namespace rehearse
