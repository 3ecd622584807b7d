#include "topology/fabrics/nic_owners.h"

#include <map>
#include <queue>
#include <string>

#include "topology/cluster/graph.h"
#include "topology/fabrics/path_cost.h"

namespace rehearse {
namespace {

// The fastest NICs of the device's machine that are nearest to it, in the order of their ids:
// Dijkstra's algorithm inside the machine, not through devices or NICs.
std::vector<VertexId> NearestNics(const Cluster& cluster, VertexId device) {
  const ClusterGraph& graph = GraphOf(cluster);
  const std::string node = cluster.VertexAt(device).node;
  std::map<VertexId, PathCost> distance = {{device, PathCost()}};
  using Entry = std::pair<PathCost, VertexId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(PathCost(), device);
  std::vector<VertexId> nics;
  const std::map<VertexId, BytesPerSecond>& speeds = cluster.wiring()->nic_speeds;
  bool are_alike = true;  // then those farther than the nearest need not be looked at
  for (const auto& [nic, speed] : speeds) are_alike = are_alike && speed == speeds.begin()->second;
  BytesPerSecond fastest(0);
  PathCost nearest = PathCost::Infinite();
  while (!open.empty()) {
    const auto [cost, vertex] = open.top();
    open.pop();
    if (are_alike && cost > nearest) break;
    if (cost > distance.at(vertex)) continue;
    if (cluster.KindOfVertex(vertex) == VertexKind::kNic) {
      const auto known = speeds.find(vertex);
      const BytesPerSecond speed = known == speeds.end() ? BytesPerSecond(0) : known->second;
      if (nics.empty() || speed > fastest) {
        nics.clear();
        fastest = speed;
        nearest = cost;
      }
      // Equal costs leave the queue in the order of their ids.
      if (speed == fastest && cost == nearest) nics.push_back(vertex);
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

std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster) {
  return NicOwners(cluster, cluster.devices());  // machines share no NICs
}

std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster,
                                             const std::vector<VertexId>& devices) {
  std::vector<std::vector<VertexId>> nearest;
  std::map<std::vector<VertexId>, size_t> sharing;  // nearest NICs -> devices
  for (const VertexId device : devices) {
    nearest.push_back(NearestNics(cluster, device));
    ++sharing[nearest.back()];
  }
  std::map<std::vector<VertexId>, size_t> dealt;
  std::vector<std::vector<VertexId>> owned;
  for (const std::vector<VertexId>& nics : nearest) {
    std::vector<VertexId>& own = owned.emplace_back();
    if (nics.empty()) continue;
    const size_t turn = dealt[nics]++;
    own.push_back(nics[turn % nics.size()]);
    const size_t devices_here = sharing[nics];
    for (size_t i = turn + devices_here; i < nics.size(); i += devices_here) own.push_back(nics[i]);
  }
  return owned;
}

}  // namespace rehearse
