#include "topology/cluster/grid.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "topology/cluster/graph.h"

namespace rehearse {
namespace {

// Tries to explain all links by dimensions, the fastest first.
class GridFinder {
 public:
  GridFinder(uint32_t ranks, std::set<std::pair<uint32_t, uint32_t>> neighbours)
      : ranks_(ranks), neighbours_(std::move(neighbours)) {}

  std::optional<Grid> Find() {
    if (Extend(1, 0)) return grid_;
    return std::nullopt;
  }

 private:
  bool AreNeighbours(uint32_t low, uint32_t high) const {
    return neighbours_.count({low, high}) > 0;
  }

  // The dimensions below `stride` explain `explained` links.
  bool Extend(uint32_t stride, size_t explained) {
    if (stride == ranks_) return explained == neighbours_.size();
    for (uint32_t size = 2; stride * size <= ranks_; ++size) {
      if (ranks_ % (stride * size) != 0) continue;
      const bool wraps = size > 2 && AreNeighbours(0, (size - 1) * stride);
      const std::optional<size_t> links = LinksOf(stride, size, wraps);
      if (!links) continue;
      grid_.sizes.push_back(size);
      grid_.wraps.push_back(wraps);
      if (Extend(stride * size, explained + *links)) return true;
      grid_.sizes.pop_back();
      grid_.wraps.pop_back();
    }
    return false;
  }

  // How many links such a dimension has, if it has all of them.
  std::optional<size_t> LinksOf(uint32_t stride, uint32_t size, bool wraps) const {
    size_t links = 0;
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      const uint32_t coordinate = rank / stride % size;
      if (coordinate + 1 < size) {
        if (!AreNeighbours(rank, rank + stride)) return std::nullopt;
        ++links;
      } else if (wraps) {
        if (!AreNeighbours(rank - coordinate * stride, rank)) return std::nullopt;
        ++links;
      }
    }
    return links;
  }

  const uint32_t ranks_;
  const std::set<std::pair<uint32_t, uint32_t>> neighbours_;
  Grid grid_;
};

}  // namespace

uint32_t Grid::Coordinate(uint32_t rank, size_t dimension) const {
  for (size_t i = 0; i < dimension; ++i) rank /= sizes[i];
  return rank % sizes[dimension];
}

std::vector<std::optional<uint32_t>> RouterOwners(const Cluster& cluster) {
  const ClusterGraph& graph = GraphOf(cluster);
  std::vector<std::optional<uint32_t>> owners(cluster.vertex_count());
  std::vector<bool> is_shared(owners.size());
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) {
    const auto device = cluster.devices()[rank];
    owners[device] = rank;
    const auto claim = [&](VertexId vertex) {
      if (cluster.KindOfVertex(vertex) != VertexKind::kSwitch) return;
      if (owners[vertex] && *owners[vertex] != rank) is_shared[vertex] = true;
      owners[vertex] = rank;
    };
    for (auto [it, end] = boost::out_edges(device, graph); it != end; ++it)
      claim(boost::target(*it, graph));
    for (auto [it, end] = boost::in_edges(device, graph); it != end; ++it)
      claim(boost::source(*it, graph));
  }
  for (VertexId vertex = 0; vertex < owners.size(); ++vertex)
    if (is_shared[vertex]) owners[vertex].reset();
  return owners;
}

std::optional<Grid> FindGrid(const Cluster& cluster) {
  constexpr uint32_t kFewest = 4;
  if (cluster.device_count() < kFewest) return std::nullopt;
  const std::vector<std::optional<uint32_t>> owners = RouterOwners(cluster);
  std::set<std::pair<uint32_t, uint32_t>> neighbours;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const auto from = owners[cluster.SourceOf(i)];
    const auto to = owners[cluster.TargetOf(i)];
    if (!from || !to) return std::nullopt;
    if (*from != *to) neighbours.insert(std::minmax(*from, *to));
  }
  return GridFinder(cluster.device_count(), std::move(neighbours)).Find();
}

std::optional<GridOfNodes> FindGridOfNodes(const Cluster& cluster) {
  constexpr size_t kFewest = 4;
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  constexpr uint32_t kMostLooks = 1u << 20;  // names are made on demand
  if (cluster.node_count() < kFewest || cluster.vertex_count() > kMostLooks) return std::nullopt;
  GridOfNodes found;
  found.place_of.assign(cluster.vertex_count(), kNone);
  std::map<std::string, uint32_t> places;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const std::string node = cluster.VertexAt(id).node;
    if (node.empty()) continue;
    const auto [entry, is_new] =
        places.try_emplace(node, static_cast<uint32_t>(found.nodes.size()));
    if (is_new) found.nodes.push_back(node);
    found.place_of[id] = entry->second;
  }
  if (found.nodes.size() < kFewest) return std::nullopt;
  found.devices_of.assign(found.nodes.size(), 0);
  for (const VertexId device : cluster.devices()) {
    if (found.place_of[device] == kNone) return std::nullopt;
    ++found.devices_of[found.place_of[device]];
  }
  // Switches outside nodes: each has to touch one node.
  std::vector<uint32_t> owner = found.place_of;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const VertexId ends[] = {cluster.SourceOf(i), cluster.TargetOf(i)};
    for (const int side : {0, 1}) {
      const uint32_t node = found.place_of[ends[side]];
      uint32_t& other = owner[ends[1 - side]];
      if (node == kNone || found.place_of[ends[1 - side]] != kNone) continue;
      if (other != kNone && other != node) return std::nullopt;
      other = node;
    }
  }
  std::set<std::pair<uint32_t, uint32_t>> neighbours;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const uint32_t from = owner[cluster.SourceOf(i)];
    const uint32_t to = owner[cluster.TargetOf(i)];
    if (from == kNone || to == kNone) return std::nullopt;
    if (from != to) neighbours.insert(std::minmax(from, to));
  }
  std::optional<Grid> grid =
      GridFinder(static_cast<uint32_t>(found.nodes.size()), std::move(neighbours)).Find();
  if (!grid) return std::nullopt;
  found.grid = std::move(*grid);
  found.place_of = std::move(owner);
  return found;
}

}  // namespace rehearse
