#include "topology/fabrics/nic_owners.h"

#include <map>
#include <queue>
#include <string>

#include "topology/cluster/graph.h"
#include "topology/fabrics/path_cost.h"

namespace rehearse {
namespace {

// The NICs of the device's machine that are nearest to it, in the order of their ids: Dijkstra's
// algorithm inside the machine, not through devices or NICs.
std::vector<VertexId> NearestNics(const Cluster& cluster, VertexId device) {
  const ClusterGraph& graph = GraphOf(cluster);
  const std::string node = cluster.VertexAt(device).node;
  std::map<VertexId, PathCost> distance = {{device, PathCost()}};
  using Entry = std::pair<PathCost, VertexId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(PathCost(), device);
  std::vector<VertexId> nics;
  PathCost nearest = PathCost::Infinite();
  while (!open.empty()) {
    const auto [cost, vertex] = open.top();
    open.pop();
    if (cost > nearest) break;
    if (cost > distance.at(vertex)) continue;
    if (cluster.KindOfVertex(vertex) == VertexKind::kNic) {
      nearest = cost;
      nics.push_back(vertex);  // equal costs leave the queue in the order of their ids
      continue;
    }
    if (cluster.KindOfVertex(vertex) == VertexKind::kDevice && vertex != device) continue;
    for (auto [it, end] = boost::out_edges(vertex, graph); it != end; ++it) {
      const VertexId next = boost::target(*it, graph);
      if (cluster.VertexAt(next).node != node) continue;
      const PathCost total = cost + PathCost{ToTime(cluster.Link(graph[*it].index).latency), 1, 0};
      const auto [known, is_new] = distance.emplace(next, total);
      if (!is_new && !(total < known->second)) continue;
      known->second = total;
      open.emplace(total, next);
    }
  }
  return nics;
}

}  // namespace

std::vector<VertexId> NicOwners(const Cluster& cluster) {
  return NicOwners(cluster, cluster.devices());  // machines share no NICs
}

std::vector<VertexId> NicOwners(const Cluster& cluster, const std::vector<VertexId>& devices) {
  std::vector<VertexId> owned;
  // Nearest NICs -> how many devices have got theirs.
  std::map<std::vector<VertexId>, size_t> dealt;
  for (const VertexId device : devices) {
    const std::vector<VertexId> nics = NearestNics(cluster, device);
    owned.push_back(nics.empty() ? kNoVertex : nics[dealt[nics]++ % nics.size()]);
  }
  return owned;
}

}  // namespace rehearse
