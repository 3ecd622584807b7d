#include "topology/cluster/builder.h"

#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "topology/cluster/graph.h"
#include "topology/cluster/link_check.h"
#include "topology/cluster/reachability.h"

namespace rehearse {
ClusterBuilder::ClusterBuilder(std::string name)
    : wiring_(std::make_unique<Wiring>(std::move(name))) {}

uint32_t ClusterBuilder::AddDeviceSpec(const DeviceSpec& spec) {
  figures_.device_specs.push_back(spec);
  return static_cast<uint32_t>(figures_.device_specs.size() - 1);
}

void ClusterBuilder::Reserve(size_t vertices, size_t links) {
  wiring_->vertices.reserve(vertices);
  wiring_->graph->graph.m_vertices.reserve(vertices);
  wiring_->vertex_by_name.reserve(vertices);
  wiring_->links.reserve(links);
  links_.reserve(links);
}

VertexId ClusterBuilder::AddVertex(const Vertex& vertex, uint32_t spec) {
  const bool is_device = vertex.kind == VertexKind::kDevice;
  if (vertex.name.empty()) throw Error("a vertex of the cluster has no name");
  if (is_device && spec >= figures_.device_specs.size())
    throw Error(fmt::format("vertex \"{}\" is a device of a kind that was not added", vertex.name));
  const auto& known = wiring_->vertex_by_name;
  if (known.find(std::string_view(vertex.name)) != known.end())
    throw Error(fmt::format("there are two vertices named \"{}\"", vertex.name));
  CHECK_LT(vertex_count(), size_t{0xffffffff});
  const VertexId id = boost::add_vertex(wiring_->graph->graph);
  wiring_->vertices.push_back(vertex);
  wiring_->vertex_by_name.insert(id);
  if (is_device) {
    wiring_->devices.push_back(id);
    figures_.spec_of_rank.push_back(spec);
  }
  return id;
}

void ClusterBuilder::AddVerticesOf(const Cluster& cluster) {
  CHECK_EQ(vertex_count(), size_t{0});
  CHECK(figures_.device_specs.empty());
  figures_.device_specs = cluster.device_specs();
  Reserve(cluster.vertex_count(), cluster.link_count());
  uint32_t rank = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const Vertex& vertex = cluster.VertexAt(id);
    AddVertex(vertex, vertex.kind == VertexKind::kDevice ? cluster.SpecOf(rank++) : 0);
  }
}

void ClusterBuilder::AddLink(VertexId from, VertexId to, const ClusterLink& link) {
  if (from >= vertex_count() || to >= vertex_count())
    throw Error(fmt::format("a link joins vertices {} and {}, but there are only {}", from, to,
                            vertex_count()));
  const auto name = [&] {
    return wiring_->vertices[from].name + "->" + wiring_->vertices[to].name;
  };
  if (from == to) throw Error(fmt::format("link {} leads from a vertex to itself", name()));
  const LinkFigures figures = {link.bandwidth, link.efficiency, link.latency};
  CheckLink(figures, name);
  CHECK_LT(links_.size(), size_t{0xffffffff});
  boost::add_edge(from, to, ClusterEdge{link_count()}, wiring_->graph->graph);
  wiring_->links.push_back({static_cast<uint32_t>(from), static_cast<uint32_t>(to), link.kind});
  links_.push_back(figures);
}

void ClusterBuilder::AddLinks(VertexId a, VertexId b, const ClusterLink& link) {
  AddLink(a, b, link);
  AddLink(b, a, link);
}

void ClusterBuilder::set_structure(std::shared_ptr<const ClusterStructure> structure,
                                   std::vector<Seconds> machine_latencies, Trunks trunks,
                                   bool is_whole) {
  wiring_->structure = std::move(structure);
  wiring_->trunks = std::move(trunks);
  figures_.machine_latencies = std::move(machine_latencies);
  is_whole_ = is_whole;
}

Cluster ClusterBuilder::Finish() {
  CHECK(wiring_ != nullptr);
  if (wiring_->devices.empty())
    throw Error(fmt::format("cluster \"{}\" has no device", wiring_->name));
  // What a builder of equal machines made is connected until links are taken away.
  if (!is_whole_) CheckConnected(*wiring_);

  std::unordered_map<std::string, uint32_t> index_of_node;
  for (const VertexId device : wiring_->devices) {
    const auto next = static_cast<uint32_t>(index_of_node.size());
    wiring_->node_index.push_back(
        index_of_node.emplace(wiring_->vertices[device].node, next).first->second);
  }
  wiring_->node_count = static_cast<uint32_t>(index_of_node.size());
  figures_.links = std::make_shared<const std::vector<LinkFigures>>(std::move(links_));
  return {std::move(wiring_), std::make_shared<const Figures>(std::move(figures_))};
}

}  // namespace rehearse
