#include "topology/presets/machine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

LinkFigures FiguresOf(const ClusterLink& link) {
  return {link.bandwidth, link.efficiency, link.latency};
}

void AddMachines(ClusterBuilder& cluster, const NodeShape& shape, const ClusterStructure& structure,
                 uint32_t device) {
  EqualMachines machines;
  std::vector<LinkFigures> figures;
  machines.count = structure.machines;
  machines.prefix = shape.prefix;
  for (const NodeShape::Part& part : shape.parts) machines.parts.push_back({part.name, part.kind});
  for (const NodeShape::Wire& wire : shape.wires) {
    machines.wires.push_back({wire.from, wire.to, wire.link.kind});
    figures.push_back(FiguresOf(wire.link));
  }
  machines.ports = structure.port_vertex;
  if (!machines.ports.empty()) {
    for (const NodeShape::Port& port : shape.ports) {
      machines.cables.push_back(port.cable.kind);
      figures.resize(figures.size() + 2, FiguresOf(port.cable));  // both ways
    }
    machines.switches.reserve(size_t{machines.count} * machines.ports.size());
    for (uint32_t machine = 0; machine < machines.count; ++machine)
      for (uint32_t port = 0; port < structure.ports(); ++port)
        machines.switches.push_back(static_cast<uint32_t>(
            structure.fabric->first_switch + SwitchOfPort(*structure.fabric, machine, port)));
  }
  cluster.AddMachines(std::move(machines), std::move(figures), device);
}

// Two machines and a switch for each tree are enough to see whether any number of machines on any
// fabric is connected. Throws Error if not.
void CheckConnected(const NodeShape& shape, const MachineSpec& spec, uint32_t trees,
                    const DeviceSpec& device) {
  ClusterBuilder probe(spec.name);
  probe.AddDeviceSpec(device);
  const VertexId hub = probe.vertex_count();
  for (uint32_t tree = 0; tree < trees; ++tree)
    probe.AddVertex({fmt::format("fabric{}", tree), VertexKind::kSwitch, ""});
  for (uint32_t machine = 0; machine < std::min(spec.nodes, 2u); ++machine) {
    const std::string node = fmt::format("{}{}", shape.prefix, machine);
    const VertexId first = probe.vertex_count();
    for (const NodeShape::Part& part : shape.parts)
      probe.AddVertex({node + "/" + part.name, part.kind, node});
    for (const NodeShape::Wire& wire : shape.wires)
      probe.AddLink(first + wire.from, first + wire.to, wire.link);
    for (size_t i = 0; i < shape.ports.size(); ++i)
      probe.AddLinks(first + shape.ports[i].part, hub + i % trees, shape.ports[i].cable);
  }
  probe.Finish();
}

// How many separate trees the fabric has. Throws Error if the machine cannot be cabled to them.
uint32_t TreesOf(const MachineSpec& spec, const NodeShape& shape) {
  const auto* clos = spec.fabric ? std::get_if<ClosSpec>(&*spec.fabric) : nullptr;
  return clos == nullptr ? 1 : TreesFor(*clos, static_cast<uint32_t>(shape.ports.size()));
}

// Where the rails do not meet, traffic to another rail goes over NVLink to that rail's device
// (topology/fabrics/router.h), or through the host. Throws Error if there is neither.
void CheckRails(const NodeShape& shape, const MachineSpec& spec, uint32_t trees,
                const DeviceSpec& device) {
  const NodeSpec& node = spec.node;
  const auto is_nvlink = [](const std::optional<ClusterLink>& link) {
    return link && link->kind == LinkKind::kNvLink;
  };
  const bool are_all_joined =
      node.lanes.size() >= uint64_t{node.devices} * (node.devices - 1) / 2 && is_nvlink(node.lane);
  if (are_all_joined || is_nvlink(node.nvswitch)) return;
  try {
    CheckConnected(shape, spec, trees, device);
  } catch (const Error& error) {
    throw Error(
        fmt::format("on separate rails every two devices need NVLinks between them, or a way "
                    "through the host: {}",
                    error.what()));
  }
}

// Throws Error for machines that are too large, before anything of them is made.
void CheckSize(const MachineSpec& spec) {
  constexpr uint64_t kMost = 1u << 24;  // links or vertices, without the fabric's: some gigabytes
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

// Every device has the same share of its host's memory bandwidth, unless it says its own.
DeviceSpec WithShareOfHost(DeviceSpec device, const NodeSpec& node) {
  if (node.host && !(device.host_bandwidth > BytesPerSecond(0)))
    device.host_bandwidth = node.host->memory_bandwidth * node.host->sockets / node.devices;
  return device;
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

  CheckConnected(shape, spec, 1, device);
  const uint32_t trees = TreesOf(spec, shape);
  if (trees > 1) CheckRails(shape, spec, trees, device);

  ClusterBuilder cluster(spec.name);
  const uint32_t device_index = cluster.AddDeviceSpec(WithShareOfHost(device, spec.node));
  auto structure = std::make_shared<ClusterStructure>();
  structure->machines = spec.nodes;
  structure->devices_per_machine = spec.node.devices;
  structure->vertices_per_machine = static_cast<uint32_t>(shape.parts.size());
  structure->inner_links = static_cast<uint32_t>(shape.wires.size());
  for (const NodeShape::Port& port : shape.ports) structure->port_vertex.push_back(port.part);
  if (spec.fabric && !shape.ports.empty())
    structure->fabric = AddFabric(cluster, *spec.fabric, spec.nodes, structure->ports());
  structure->first_vertex = cluster.vertex_count();
  structure->first_link = cluster.link_count();
  AddMachines(cluster, shape, *structure, device_index);
  structure->link_count = cluster.link_count();
  for (const std::string& note : spec.notes) cluster.AddNote(note);
  cluster.set_network_plugin(FindNetworkPlugin(spec.network_plugin));
  SetStructure(cluster, std::move(structure));
  return std::make_unique<Cluster>(cluster.Finish());
}

}  // namespace rehearse
