#include "topology/rebuild.h"

#include "topology/structure.h"

namespace rehearse {

ClusterParts PartsOf(const Cluster& cluster) {
  ClusterParts parts;
  parts.specs = cluster.device_specs();
  for (const auto device : cluster.devices())
    parts.spec_of_rank.push_back(cluster.graph()[device].device);
  for (uint32_t i = 0; i < cluster.link_count(); ++i) parts.links.push_back(cluster.Link(i));
  parts.is_down.resize(parts.links.size());
  parts.step_overhead = cluster.step_overhead();
  parts.collective_overhead = cluster.collective_overhead();
  return parts;
}

std::unique_ptr<Cluster> Rebuild(const Cluster& cluster, const ClusterParts& parts) {
  const Cluster::Graph& graph = cluster.graph();
  auto rebuilt = std::make_unique<Cluster>(cluster.name());
  for (const DeviceSpec& spec : parts.specs) rebuilt->AddDeviceSpec(spec);
  size_t rank = 0;
  for (Cluster::VertexId vertex = 0; vertex < boost::num_vertices(graph); ++vertex) {
    Vertex copy = graph[vertex];
    if (copy.kind == VertexKind::kDevice) copy.device = parts.spec_of_rank[rank++];
    rebuilt->AddVertex(copy);
  }
  for (uint32_t i = 0; i < parts.links.size(); ++i) {
    if (parts.is_down[i]) continue;
    const auto edge = cluster.Edge(i);
    rebuilt->AddLink(boost::source(edge, graph), boost::target(edge, graph), parts.links[i]);
  }
  rebuilt->set_step_overhead(parts.step_overhead);
  rebuilt->set_collective_overhead(parts.collective_overhead);
  for (const std::string& note : cluster.notes()) rebuilt->AddNote(note);
  if (cluster.structure() != nullptr)
    rebuilt->set_structure(
        std::make_shared<ClusterStructure>(WithoutLinks(*cluster.structure(), parts.is_down)));
  return rebuilt;
}

}  // namespace rehearse
