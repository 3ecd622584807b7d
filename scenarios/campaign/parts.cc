#include "scenarios/campaign/parts.h"

#include <algorithm>
#include <set>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The links of the network, and from a device to its host.
struct LinkCounts {
  double network = 0;
  BytesPerSecond from_nics;
  BytesPerSecond copy;
};

LinkCounts CountLinks(const Cluster& cluster, VertexId device) {
  LinkCounts counts;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const LinkKind kind = cluster.KindOf(i);
    if (kind == LinkKind::kNetwork) {
      ++counts.network;
      if (cluster.KindOfVertex(cluster.SourceOf(i)) == VertexKind::kNic)
        counts.from_nics += cluster.Link(i).Capacity();
      continue;
    }
    if (cluster.SourceOf(i) != device) continue;
    const VertexKind to = cluster.KindOfVertex(cluster.TargetOf(i));
    if (to == VertexKind::kPcieSwitch || to == VertexKind::kSocket)
      counts.copy = std::max(counts.copy, cluster.Link(i).Capacity());
  }
  return counts;
}

double& CountOf(PartKind kind, RunParts* parts) { return parts->counts[static_cast<size_t>(kind)]; }

}  // namespace

RunParts CountParts(const Cluster& cluster, const std::vector<uint32_t>& placement) {
  CHECK(!placement.empty());
  std::set<uint32_t> machines;
  for (const uint32_t device : placement) machines.insert(cluster.NodeIndexOf(device));
  double nics = 0;
  double switches = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const VertexKind kind = cluster.KindOfVertex(id);
    nics += kind == VertexKind::kNic ? 1 : 0;
    switches += kind == VertexKind::kSwitch ? 1 : 0;
  }
  const LinkCounts links = CountLinks(cluster, cluster.devices()[placement.front()]);
  const auto devices = static_cast<double>(placement.size());
  const double share = devices / cluster.device_count();
  RunParts parts;
  parts.machines = static_cast<uint32_t>(machines.size());
  parts.devices_per_machine = devices / parts.machines;
  parts.nics = links.from_nics / static_cast<double>(cluster.node_count());
  parts.copy = links.copy;
  CountOf(PartKind::kGpu, &parts) = devices;
  CountOf(PartKind::kHbm, &parts) = devices;
  CountOf(PartKind::kNic, &parts) = nics * share;
  CountOf(PartKind::kCable, &parts) = links.network / 2 * share;
  CountOf(PartKind::kSwitch, &parts) = switches * share;
  CountOf(PartKind::kHost, &parts) = parts.machines;
  CountOf(PartKind::kSoftware, &parts) = parts.machines;
  CountOf(PartKind::kPlanned, &parts) = 1;
  return parts;
}

}  // namespace rehearse
