// Clusters as rows for other programs; see topology/view/cluster_view.h.
#include "topology/view/cluster_view.h"

namespace rehearse {

DataTable TableOf(const ClusterSummary& summary) {
  DataTable table({{"cluster", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"low", CellKind::kText},
                   {"high", CellKind::kText},
                   {"up", CellKind::kInteger},
                   {"down", CellKind::kInteger},
                   {"bandwidth_bytes_per_second", CellKind::kNumber},
                   {"efficiency", CellKind::kNumber},
                   {"latency_seconds", CellKind::kNumber}});
  for (const LinkGroup& link : summary.links) {
    table.Add({summary.name, Name(link.kind), Name(link.low), Name(link.high), link.up, link.down,
               link.bandwidth.value(), link.efficiency, link.latency.value()});
  }
  return table;
}

DataTable PathTable(Router& router, uint32_t from_rank, uint32_t to_rank) {
  const Cluster& cluster = router.cluster();
  const Route& route = router.Between(from_rank, to_rank);
  DataTable table({{"hop", CellKind::kInteger},
                   {"from", CellKind::kText},
                   {"to", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"bandwidth_bytes_per_second", CellKind::kNumber},
                   {"efficiency", CellKind::kNumber},
                   {"capacity_bytes_per_second", CellKind::kNumber},
                   {"latency_seconds", CellKind::kNumber},
                   {"bottleneck", CellKind::kTruth}});
  for (size_t i = 0; i < route.links.size(); ++i) {
    const ClusterLink& link = cluster.Link(route.links[i]);
    table.Add({i + 1, cluster.VertexAt(cluster.SourceOf(route.links[i])).name,
               cluster.VertexAt(cluster.TargetOf(route.links[i])).name, Name(link.kind),
               link.bandwidth.value(), link.efficiency, link.Capacity().value(),
               link.latency.value(), link.Capacity() == route.bandwidth});
  }
  return table;
}

DataTable TableOf(const MatrixView& view, const Cluster& cluster) {
  DataTable table({{"from_rank", CellKind::kInteger},
                   {"from", CellKind::kText},
                   {"to_rank", CellKind::kInteger},
                   {"to", CellKind::kText},
                   {"bandwidth_bytes_per_second", CellKind::kNumber},
                   {"latency_seconds", CellKind::kNumber}});
  const std::vector<uint32_t>& ranks = view.pairs.ranks;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = 0; j < ranks.size(); ++j) {
      if (i == j) continue;
      table.Add({ranks[i], cluster.DeviceName(ranks[i]), ranks[j], cluster.DeviceName(ranks[j]),
                 view.pairs.bandwidth[i][j].value(), view.pairs.latency[i][j].value()});
    }
  }
  return table;
}

}  // namespace rehearse
