#include "topology/cluster/wiring.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "sim/base/error.h"
#include "topology/cluster/graph.h"

namespace rehearse {

const char* Name(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "device";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kPcieSwitch:
      return "pcie-switch";
    case VertexKind::kSocket:
      return "socket";
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kSwitch:
      return "switch";
  }
  CHECK(false);
}

const char* Name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "nvlink";
    case LinkKind::kXgmi:
      return "xgmi";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kSocket:
      return "socket";
    case LinkKind::kNetwork:
      return "network";
    case LinkKind::kMemory:
      return "memory";
  }
  CHECK(false);
}

Wiring::Wiring(std::string cluster) : name(std::move(cluster)) {}

Wiring::~Wiring() = default;

Vertex Wiring::VertexAt(VertexId id) const {
  if (id < drawn_vertices.size()) return drawn_vertices[id];
  const size_t behind = id - drawn_vertices.size();
  const EqualMachines::Part& part = machines.parts[behind % machines.parts.size()];
  Vertex vertex;
  vertex.kind = part.kind;
  vertex.node = machines.prefix + std::to_string(behind / machines.parts.size());
  vertex.name = vertex.node + "/" + part.name;
  return vertex;
}

WiredLink Wiring::LinkAt(size_t index) const {
  if (index < drawn_links.size()) return drawn_links[index];
  const size_t behind = index - drawn_links.size();
  const size_t machine = behind / machines.links_per_machine();
  const size_t place = behind % machines.links_per_machine();
  const auto first = static_cast<uint32_t>(drawn_vertices.size() + machine * machines.parts.size());
  if (place < machines.wires.size()) {
    const WiredLink& wire = machines.wires[place];
    return {first + wire.from, first + wire.to, wire.kind};
  }
  const size_t port = (place - machines.wires.size()) / 2;
  WiredLink link = {first + machines.ports[port],
                    machines.switches[machine * machines.ports.size() + port],
                    machines.cables[port]};
  if ((place - machines.wires.size()) % 2 == 1) std::swap(link.from, link.to);
  return link;
}

VertexId Wiring::Find(std::string_view vertex) const {
  const auto drawn = vertex_by_name.find(vertex);
  if (drawn != vertex_by_name.end()) return *drawn;
  const size_t slash = vertex.find('/');
  if (slash == std::string_view::npos || !vertex.starts_with(machines.prefix)) return kNoVertex;
  const std::string_view digits =
      vertex.substr(machines.prefix.size(), slash - machines.prefix.size());
  uint32_t machine = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), machine);
  if (error != std::errc() || std::to_string(machine) != digits || machine >= machines.count)
    return kNoVertex;
  for (size_t i = 0; i < machines.parts.size(); ++i)
    if (machines.parts[i].name == vertex.substr(slash + 1))
      return drawn_vertices.size() + machine * machines.parts.size() + i;
  return kNoVertex;
}

const Wiring::Graph& Wiring::graph() const {
  std::call_once(graph_once_, [this] {
    graph_ = std::make_unique<Graph>();
    graph_->graph = ClusterGraph(vertex_count());
    for (size_t i = 0; i < link_count(); ++i) {
      const WiredLink link = LinkAt(i);
      boost::add_edge(link.from, link.to, ClusterEdge{static_cast<uint32_t>(i)}, graph_->graph);
    }
  });
  return *graph_;
}

}  // namespace rehearse
