// What there is in a cluster; see topology/view/cluster_view.h.
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/view/cluster_check.h"
#include "topology/view/cluster_view.h"

namespace rehearse {
namespace {

std::vector<LinkGroup> GroupLinks(const Cluster& cluster) {
  using Key = std::tuple<LinkKind, VertexKind, VertexKind, double, double, double>;
  std::map<Key, LinkGroup> groups;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const ClusterLink& link = cluster.Link(i);
    const auto from = cluster.SourceOf(i);
    const auto to = cluster.TargetOf(i);
    const bool up =
        std::pair(cluster.KindOfVertex(from), from) < std::pair(cluster.KindOfVertex(to), to);
    const auto [low, high] = std::minmax({cluster.KindOfVertex(from), cluster.KindOfVertex(to)});
    // The bandwidth is negated in the key, so that wide links come first.
    LinkGroup& group = groups[{link.kind, low, high, -link.bandwidth.value(), link.efficiency,
                               link.latency.value()}];
    group.kind = link.kind;
    group.low = low;
    group.high = high;
    group.bandwidth = link.bandwidth;
    group.efficiency = link.efficiency;
    group.latency = link.latency;
    ++(up ? group.up : group.down);
  }
  std::vector<LinkGroup> list;
  for (const auto& [key, group] : groups) list.push_back(group);
  return list;
}

// "spray", and what routes fall back to where links are down.
std::string RoutingText(const Cluster& cluster, const Fabric& fabric) {
  std::vector<std::string> parts;
  if (HasEqualWays(fabric)) parts.push_back(ToText(fabric.routing));
  if (!cluster.structure()->link_now.empty()) {
    Router router(cluster);
    for (std::string& fallback : router.Fallbacks()) parts.push_back(std::move(fallback));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

ClusterSummary SummarizeCluster(const Cluster& cluster) {
  ClusterSummary summary;
  summary.name = cluster.name();
  summary.devices = cluster.device_count();
  summary.nodes = cluster.node_count();
  std::map<uint32_t, uint32_t> devices;
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) ++devices[cluster.SpecOf(rank)];
  for (const auto& [spec, count] : devices)
    summary.device_kinds.emplace_back(cluster.device_specs()[spec], count);
  std::map<VertexKind, uint32_t> vertices;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) ++vertices[cluster.KindOfVertex(id)];
  summary.vertices.assign(vertices.begin(), vertices.end());
  summary.links = GroupLinks(cluster);
  if (const Fabric* fabric = FabricOf(cluster); fabric != nullptr)
    summary.routing = RoutingText(cluster, *fabric);
  summary.grid = FindGrid(cluster);
  if (cluster.device_count() <= kMostForBisection) summary.bisection = BisectionBandwidth(cluster);
  summary.rings = cluster.rings().size();
  summary.step_overhead = cluster.step_overhead();
  summary.collective_overhead = cluster.collective_overhead();
  summary.channel_overhead = cluster.channel_overhead();
  summary.notes = cluster.notes();
  std::string idle = IdleOversubscription(cluster);
  if (!idle.empty()) {
    idle.front() = 'T';
    summary.notes.push_back(idle + ".");
  }
  return summary;
}

}  // namespace rehearse
