#include "topology/presets/machine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

void StampMachine(ClusterBuilder& cluster, const NodeShape& shape,
                  const ClusterStructure& structure, uint32_t machine, uint32_t device) {
  const std::string node = fmt::format("{}{}", shape.prefix, machine);
  const VertexId first = structure.FirstVertexOf(machine);
  CHECK_EQ(first, cluster.vertex_count());
  for (const NodeShape::Part& part : shape.parts)
    cluster.AddVertex({node + "/" + part.name, part.kind, node}, device);
  CHECK_EQ(structure.FirstLinkOf(machine), cluster.link_count());
  for (const NodeShape::Wire& wire : shape.wires)
    cluster.AddLink(first + wire.from, first + wire.to, wire.link);
  for (uint32_t port = 0; port < structure.ports(); ++port)
    cluster.AddLinks(
        first + shape.ports[port],
        structure.fabric->first_switch + SwitchOfPort(*structure.fabric, machine, port),
        *shape.cable);
}

// Two machines and a switch tell whether any number of them on any fabric is connected.
// Throws Error if not.
void CheckConnected(const NodeShape& shape, const MachineSpec& spec, const DeviceSpec& device) {
  ClusterBuilder probe(spec.name);
  probe.AddDeviceSpec(device);
  const VertexId hub = probe.AddVertex({"fabric", VertexKind::kSwitch, ""});
  for (uint32_t machine = 0; machine < std::min(spec.nodes, 2u); ++machine) {
    const std::string node = fmt::format("{}{}", shape.prefix, machine);
    const VertexId first = probe.vertex_count();
    for (const NodeShape::Part& part : shape.parts)
      probe.AddVertex({node + "/" + part.name, part.kind, node});
    for (const NodeShape::Wire& wire : shape.wires)
      probe.AddLink(first + wire.from, first + wire.to, wire.link);
    for (const uint32_t port : shape.ports) probe.AddLinks(first + port, hub, *shape.cable);
  }
  probe.Finish();
}

// Before anything of it is made. Throws Error.
void CheckSize(const MachineSpec& spec) {
  constexpr uint64_t kMost = 1u << 24;  // links or vertices, but for the fabric's: some gigabytes
  const NodeSize node = SizeOf(spec.node);
  if (node.wires > kMostNodeWires)
    throw Error(fmt::format("a machine of cluster \"{}\" would have {} links, expected at most {}",
                            spec.name, node.wires, kMostNodeWires));
  // Neither factor is above 2^32.
  const uint64_t links = spec.nodes * (node.wires + 2 * node.ports);
  const uint64_t vertices = spec.nodes * node.parts;
  if (links > kMost || vertices > kMost)
    throw Error(
        fmt::format("cluster \"{}\" would have {} links and {} parts in {} machines, expected at "
                    "most {} of each",
                    spec.name, links, vertices, spec.nodes, kMost));
}

}  // namespace

std::unique_ptr<Cluster> BuildMachine(const MachineSpec& spec, const DeviceSpec& device) {
  CHECK_GT(spec.nodes, 0u);
  CheckSize(spec);
  NodeShape shape = DrawNode(spec.node);
  if (!spec.fabric) shape.ports.clear();
  if (spec.nodes > 1 && shape.ports.empty())
    throw Error(fmt::format("cluster \"{}\" has {} machines, but {}", spec.name, spec.nodes,
                            spec.fabric ? "they have no NICs" : "no fabric joins them"));

  CheckConnected(shape, spec, device);

  ClusterBuilder cluster(spec.name);
  const uint32_t device_index = cluster.AddDeviceSpec(device);
  auto structure = std::make_shared<ClusterStructure>();
  structure->machines = spec.nodes;
  structure->devices_per_machine = spec.node.devices;
  structure->vertices_per_machine = static_cast<uint32_t>(shape.parts.size());
  structure->inner_links = static_cast<uint32_t>(shape.wires.size());
  structure->port_vertex = shape.ports;
  std::vector<Seconds> latencies;  // of a machine's links
  for (const NodeShape::Wire& wire : shape.wires) latencies.push_back(wire.link.latency);
  if (spec.fabric && !shape.ports.empty()) {
    latencies.resize(structure->links_per_machine(), shape.cable->latency);
    structure->fabric = AddFabric(cluster, *spec.fabric, spec.nodes, structure->ports());
  }
  structure->first_vertex = cluster.vertex_count();
  structure->first_link = cluster.link_count();
  cluster.Reserve(structure->first_vertex + size_t{spec.nodes} * structure->vertices_per_machine,
                  structure->first_link + size_t{spec.nodes} * structure->links_per_machine());
  for (uint32_t machine = 0; machine < spec.nodes; ++machine)
    StampMachine(cluster, shape, *structure, machine, device_index);
  structure->link_count = cluster.link_count();
  for (const std::string& note : spec.notes) cluster.AddNote(note);
  cluster.set_network_plugin(FindNetworkPlugin(spec.network_plugin));
  SetStructure(cluster, std::move(structure), std::move(latencies));
  return std::make_unique<Cluster>(cluster.Finish());
}

}  // namespace rehearse
