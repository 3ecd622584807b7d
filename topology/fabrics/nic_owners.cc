#include "topology/fabrics/nic_owners.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "topology/cluster/graph.h"
#include "topology/fabrics/path_class.h"
#include "topology/fabrics/path_cost.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// How far something is from a device: the class of the path decides first.
struct NicDistance {
  PathClass worst = PathClass::kNvLink;
  PathCost cost;

  friend auto operator<=>(const NicDistance&, const NicDistance&) = default;
};

struct NearestNics {
  NicDistance distance;
  std::vector<VertexId> nics;  // in the order of their ids
};

// All NICs of the device's machine that it reaches by paths of this class or a nearer one:
// Dijkstra's algorithm inside the machine, not through devices or NICs.
std::map<VertexId, PathCost> NicsWithin(const Cluster& cluster, VertexId device, PathClass worst) {
  const ClusterGraph& graph = GraphOf(cluster);
  const std::string node = cluster.VertexAt(device).node;
  std::map<VertexId, PathCost> distance = {{device, PathCost()}};
  using Entry = std::pair<PathCost, VertexId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(PathCost(), device);
  std::map<VertexId, PathCost> nics;
  while (!open.empty()) {
    const auto [cost, vertex] = open.top();
    open.pop();
    if (cost > distance.at(vertex)) continue;
    const VertexKind kind = cluster.KindOfVertex(vertex);
    if (kind == VertexKind::kNic) nics.emplace(vertex, cost);
    if (vertex != device && (kind == VertexKind::kNic || kind == VertexKind::kDevice)) continue;
    for (auto [it, end] = boost::out_edges(vertex, graph); it != end; ++it) {
      const VertexId next = boost::target(*it, graph);
      const uint32_t link = graph[*it].index;
      if (ClassOfStep(cluster.KindOf(link), cluster.KindOfVertex(next)) > worst) continue;
      if (cluster.VertexAt(next).node != node) continue;
      const PathCost total = cost + PathCost{ToTime(FiguresForRoutes(cluster, link).latency), 1, 0};
      const auto [known, is_new] = distance.emplace(next, total);
      if (!is_new && !(total < known->second)) continue;
      known->second = total;
      open.emplace(total, next);
    }
  }
  return nics;
}

// Whether a cable leads out of the NIC, and one into it. In a cluster whose NICs have no cables at
// all, as one machine alone, it does not matter.
bool IsCabled(const Cluster& cluster, VertexId nic) {
  if (cluster.wiring()->nic_speeds.empty()) return true;
  const ClusterGraph& graph = GraphOf(cluster);
  const auto is_cable = [&](EdgeId edge) {
    return cluster.KindOf(graph[edge].index) == LinkKind::kNetwork;
  };
  const auto [out, out_end] = boost::out_edges(nic, graph);
  const auto [in, in_end] = boost::in_edges(nic, graph);
  return std::any_of(out, out_end, is_cable) && std::any_of(in, in_end, is_cable);
}

// The fastest NICs of the device's machine that are nearest to it.
NearestNics NearestOf(const Cluster& cluster, VertexId device) {
  const std::map<VertexId, BytesPerSecond>& speeds = cluster.wiring()->nic_speeds;
  const auto speed_of = [&](VertexId nic) {
    const auto known = speeds.find(nic);
    return known == speeds.end() ? BytesPerSecond(0) : known->second;
  };
  bool are_alike = true;  // then those farther than the nearest need not be looked at
  for (const auto& [nic, speed] : speeds) are_alike = are_alike && speed == speeds.begin()->second;
  NearestNics nearest;
  BytesPerSecond fastest(0);
  std::set<VertexId> met;
  for (const PathClass worst : kPathClasses) {
    for (const auto& [nic, cost] : NicsWithin(cluster, device, worst)) {
      if (!met.insert(nic).second || !IsCabled(cluster, nic)) continue;  // nearer already, or down
      const NicDistance distance = {worst, cost};
      const BytesPerSecond speed = speed_of(nic);
      const bool is_better = nearest.nics.empty() || speed > fastest ||
                             (speed == fastest && distance < nearest.distance);
      if (is_better) {
        nearest = {distance, {}};
        fastest = speed;
      }
      if (speed == fastest && distance == nearest.distance) nearest.nics.push_back(nic);
    }
    if (are_alike && !nearest.nics.empty()) break;
  }
  return nearest;
}

// If every NIC that is nearest to the device is nearer to some other device, it has none of its
// own and borrows one: of those that were lent least often so far (`lent`), that of the device that
// stands next to it. Nothing otherwise.
std::optional<VertexId> Borrowed(const std::vector<NearestNics>& nearest, size_t device,
                                 const std::map<VertexId, size_t>& lent) {
  std::optional<VertexId> borrowed;
  std::pair<size_t, size_t> least;  // how often it was lent, how far its device is
  for (const VertexId nic : nearest[device].nics) {
    bool is_anothers = false;
    for (size_t other = 0; other < nearest.size(); ++other) {
      const auto& nics = nearest[other].nics;
      if (std::find(nics.begin(), nics.end(), nic) == nics.end()) continue;
      if (!(nearest[other].distance < nearest[device].distance)) continue;
      is_anothers = true;
      const auto known = lent.find(nic);
      const std::pair<size_t, size_t> cost(known == lent.end() ? 0 : known->second,
                                           other < device ? device - other : other - device);
      if (borrowed && cost >= least) continue;
      borrowed = nic;
      least = cost;
    }
    if (!is_anothers) return std::nullopt;
  }
  return borrowed;
}

}  // namespace

std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster) {
  return NicOwners(cluster, cluster.devices());  // machines share no NICs
}

std::vector<std::vector<VertexId>> NicOwners(const Cluster& cluster,
                                             const std::vector<VertexId>& devices) {
  std::vector<NearestNics> nearest;
  nearest.reserve(devices.size());
  for (const VertexId device : devices) nearest.push_back(NearestOf(cluster, device));
  std::map<std::vector<VertexId>, size_t> sharing;  // nearest NICs -> devices
  std::vector<std::optional<VertexId>> borrowed;
  std::map<VertexId, size_t> lent;
  for (size_t device = 0; device < nearest.size(); ++device) {
    borrowed.push_back(Borrowed(nearest, device, lent));
    if (borrowed.back())
      ++lent[*borrowed.back()];
    else
      ++sharing[nearest[device].nics];
  }
  std::map<std::vector<VertexId>, size_t> dealt;
  std::vector<std::vector<VertexId>> owned;
  for (size_t device = 0; device < nearest.size(); ++device) {
    const std::vector<VertexId>& nics = nearest[device].nics;
    std::vector<VertexId>& own = owned.emplace_back();
    if (borrowed[device]) own.push_back(*borrowed[device]);
    if (borrowed[device] || nics.empty()) continue;
    const size_t turn = dealt[nics]++;
    own.push_back(nics[turn % nics.size()]);
    const size_t devices_here = sharing[nics];
    for (size_t i = turn + devices_here; i < nics.size(); i += devices_here) own.push_back(nics[i]);
  }
  return owned;
}

}  // namespace rehearse
