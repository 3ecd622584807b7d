#include "topology/cluster/builder.h"

#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "topology/cluster/link_check.h"
#include "topology/cluster/reachability.h"

namespace rehearse {
ClusterBuilder::ClusterBuilder(std::string name)
    : wiring_(std::make_unique<Wiring>(std::move(name))) {
  figures_.network_plugin = KnownNetworkPlugins().front();  // as every file that names none
}

uint32_t ClusterBuilder::AddDeviceSpec(const DeviceSpec& spec) {
  figures_.device_specs.push_back(spec);
  return static_cast<uint32_t>(figures_.device_specs.size() - 1);
}

void ClusterBuilder::Reserve(size_t vertices, size_t links) {
  wiring_->drawn_vertices.reserve(vertices);
  wiring_->vertex_by_name.reserve(vertices);
  wiring_->drawn_links.reserve(links);
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
  CHECK_EQ(wiring_->machines.count, 0u);  // they come last
  CHECK_LT(vertex_count(), size_t{0xffffffff});
  const VertexId id = vertex_count();
  wiring_->drawn_vertices.push_back(vertex);
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
    return wiring_->drawn_vertices[from].name + "->" + wiring_->drawn_vertices[to].name;
  };
  if (from == to) throw Error(fmt::format("link {} leads from a vertex to itself", name()));
  const LinkFigures figures = {link.bandwidth, link.efficiency, link.latency};
  CheckLink(figures, name);
  CHECK_EQ(wiring_->machines.count, 0u);
  CHECK_LT(links_.size(), size_t{0xffffffff});
  wiring_->drawn_links.push_back(
      {static_cast<uint32_t>(from), static_cast<uint32_t>(to), link.kind});
  links_.push_back(figures);
}

void ClusterBuilder::AddLinks(VertexId a, VertexId b, const ClusterLink& link) {
  AddLink(a, b, link);
  AddLink(b, a, link);
}

void ClusterBuilder::AddMachines(EqualMachines machines, std::vector<LinkFigures> figures,
                                 uint32_t spec) {
  CHECK_EQ(wiring_->machines.count, 0u);
  CHECK_LT(spec, figures_.device_specs.size());
  CHECK_EQ(figures.size(), machines.links_per_machine());
  CHECK_EQ(machines.switches.size(), machines.count * machines.ports.size());
  CHECK_LT(vertex_count() + machines.vertex_count(), size_t{0xffffffff});
  CHECK_LT(links_.size() + machines.link_count(), size_t{0xffffffff});
  const auto name = [&](size_t place) { return fmt::format("{} of a machine", place); };
  for (size_t i = 0; i < figures.size(); ++i) CheckLink(figures[i], [&] { return name(i); });
  std::vector<VertexId> devices;
  for (size_t i = 0; i < machines.parts.size(); ++i)
    if (machines.parts[i].kind == VertexKind::kDevice) devices.push_back(vertex_count() + i);
  wiring_->devices.reserve(machines.count * devices.size());
  for (uint32_t machine = 0; machine < machines.count; ++machine)
    for (const VertexId device : devices)
      wiring_->devices.push_back(device + machine * machines.parts.size());
  figures_.spec_of_rank.resize(wiring_->devices.size(), spec);
  machine_figures_ = std::move(figures);
  wiring_->machines = std::move(machines);
}

void ClusterBuilder::set_structure(std::shared_ptr<const ClusterStructure> structure, Trunks trunks,
                                   bool is_whole) {
  wiring_->structure = std::move(structure);
  wiring_->trunks = std::move(trunks);
  is_whole_ = is_whole;
}

Cluster ClusterBuilder::Finish() {
  CHECK(wiring_ != nullptr);
  if (wiring_->devices.empty())
    throw Error(fmt::format("cluster \"{}\" has no device", wiring_->name));
  // What was built from equal machines is connected until links are taken away.
  if (!is_whole_) CheckConnected(*wiring_);

  for (size_t i = 0; i < links_.size(); ++i) {
    const WiredLink& link = wiring_->drawn_links[i];
    if (link.kind == LinkKind::kNetwork && wiring_->KindAt(link.from) == VertexKind::kNic)
      wiring_->nic_speeds[link.from] += links_[i].bandwidth;
  }

  std::unordered_map<std::string, uint32_t> index_of_node;
  const EqualMachines& machines = wiring_->machines;
  const size_t drawn = wiring_->drawn_vertices.size();
  wiring_->node_index.reserve(wiring_->devices.size());
  for (const VertexId device : wiring_->devices) {
    auto node = static_cast<uint32_t>(index_of_node.size());
    if (device >= drawn) {
      node += static_cast<uint32_t>((device - drawn) / machines.parts.size());
    } else {
      node = index_of_node.emplace(wiring_->drawn_vertices[device].node, node).first->second;
    }
    wiring_->node_index.push_back(node);
  }
  wiring_->node_count = static_cast<uint32_t>(index_of_node.size()) + machines.count;
  figures_.links = std::make_shared<const FigureTable>(std::move(links_),
                                                       std::move(machine_figures_), machines.count);
  wiring_->drawn_figures = figures_.links;
  return {std::move(wiring_), std::make_shared<const Figures>(std::move(figures_))};
}

}  // namespace rehearse
