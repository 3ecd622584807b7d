#include "topology/fabrics/host_ways.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "topology/fabrics/path_cost.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

bool HasAlikeMachines(const Cluster& cluster) {
  const ClusterStructure* structure = cluster.structure().get();
  return structure != nullptr && structure->link_now.empty() &&
         cluster.figures().links->HasEqualMachines();
}

}  // namespace

HostWays::HostWays(const Cluster& cluster)
    : cluster_(cluster), are_alike_(HasAlikeMachines(cluster)) {}

std::vector<uint32_t> HostWays::Of(uint32_t rank, bool to_host) {
  const uint32_t devices = are_alike_ ? cluster_.structure()->devices_per_machine : 0;
  const uint32_t first = are_alike_ ? cluster_.structure()->FirstLinkOf(rank / devices) : 0;
  const uint32_t place = are_alike_ ? rank % devices : rank;
  const auto [known, is_new] = known_.try_emplace({place, to_host});
  if (is_new) {
    known->second = Find(rank, to_host);
    for (uint32_t& link : known->second) link -= first;
  }
  std::vector<uint32_t> way = known->second;
  for (uint32_t& link : way) link += first;
  return way;
}

// Those that begin or end at a part of it, and some more.
std::vector<uint32_t> HostWays::LinksOfMachine(uint32_t rank) {
  if (are_alike_) {
    const ClusterStructure& structure = *cluster_.structure();
    std::vector<uint32_t> links(structure.inner_links);
    std::iota(links.begin(), links.end(),
              structure.FirstLinkOf(rank / structure.devices_per_machine));
    return links;
  }
  if (links_of_node_.empty()) {
    std::map<std::string, uint32_t> nodes;
    for (uint32_t i = 0; i < cluster_.device_count(); ++i)
      nodes.emplace(cluster_.NodeOf(i), cluster_.NodeIndexOf(i));
    links_of_node_.resize(cluster_.node_count());
    for (uint32_t link = 0; link < cluster_.link_count(); ++link) {
      const auto node = nodes.find(cluster_.VertexAt(cluster_.SourceOf(link)).node);
      const bool is_inside =
          node != nodes.end() && cluster_.VertexAt(cluster_.TargetOf(link)).node == node->first;
      if (is_inside) links_of_node_[node->second].push_back(link);
    }
  }
  return links_of_node_[cluster_.NodeIndexOf(rank)];
}

// Dijkstra's algorithm from the device, along the links or against them.
std::vector<uint32_t> HostWays::Find(uint32_t rank, bool to_host) {
  const VertexId device = cluster_.devices()[rank];
  const auto begin_of = [&](uint32_t link) {
    return to_host ? cluster_.SourceOf(link) : cluster_.TargetOf(link);
  };
  const auto end_of = [&](uint32_t link) {
    return to_host ? cluster_.TargetOf(link) : cluster_.SourceOf(link);
  };
  std::multimap<VertexId, uint32_t> links;  // by where they begin
  for (const uint32_t link : LinksOfMachine(rank)) links.emplace(begin_of(link), link);

  struct Reached {
    PathCost cost;
    std::optional<uint32_t> by;  // none: it is the device
  };
  std::map<VertexId, Reached> reached = {{device, {}}};
  using Entry = std::pair<PathCost, VertexId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(PathCost(), device);
  while (!open.empty()) {
    const auto [cost, vertex] = open.top();
    open.pop();
    if (cost > reached.at(vertex).cost) continue;
    const VertexKind kind = cluster_.KindOfVertex(vertex);
    if (kind == VertexKind::kSocket) {
      std::vector<uint32_t> way;
      for (VertexId at = vertex; reached.at(at).by; at = begin_of(way.back()))
        way.push_back(*reached.at(at).by);
      if (to_host) std::reverse(way.begin(), way.end());
      return way;
    }
    if (vertex != device && (kind == VertexKind::kDevice || kind == VertexKind::kNic)) continue;
    const auto [first, last] = links.equal_range(vertex);
    for (auto link = first; link != last; ++link) {
      const PathCost total =
          cost + PathCost{ToTime(FiguresForRoutes(cluster_, link->second).latency), 1, 0};
      const auto [known, is_new] =
          reached.emplace(end_of(link->second), Reached{total, link->second});
      if (!is_new && !(total < known->second.cost)) continue;
      known->second = {total, link->second};
      open.emplace(total, end_of(link->second));
    }
  }
  throw Error(fmt::format(
      "the cluster \"{}\": {} has no way {} the memory of a host, which offloading needs: its "
      "machine has no socket that {}",
      cluster_.name(), cluster_.DeviceName(rank), to_host ? "to" : "from",
      to_host ? "it reaches" : "reaches it"));
}

}  // namespace rehearse
