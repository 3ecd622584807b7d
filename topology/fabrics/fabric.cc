#include "topology/fabrics/fabric.h"

namespace rehearse {

Fabric AddFabric(ClusterBuilder& cluster, const FabricSpec& spec, uint32_t machines,
                 uint32_t ports) {
  Fabric fabric;
  if (const auto* clos = std::get_if<ClosSpec>(&spec)) {
    fabric.kind = AddClos(cluster, *clos, machines, ports, &fabric.first_switch);
  } else if (const auto* dragonfly = std::get_if<DragonflySpec>(&spec)) {
    fabric.kind = AddDragonfly(cluster, *dragonfly, machines, ports, &fabric.first_switch);
  } else {
    if (ports != 1) throw Error("in a torus every machine has one port, to its router");
    fabric.kind = AddTorus(cluster, std::get<TorusSpec>(spec), machines, &fabric.first_switch);
  }
  return fabric;
}

uint32_t SwitchOfPort(const Fabric& fabric, uint32_t machine, uint32_t port) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return LeafOf(*clos, machine, port);
  if (const auto* dragonfly = std::get_if<Dragonfly>(&fabric.kind))
    return SwitchOf(*dragonfly, machine, port);
  return machine;
}

void AppendPath(const Fabric& fabric, uint32_t from, uint32_t to, DragonflyRouting dragonfly,
                uint64_t flow, std::vector<uint32_t>* links) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) {
    AppendPath(*clos, from, to, flow, links);
  } else if (const auto* groups = std::get_if<Dragonfly>(&fabric.kind)) {
    AppendPath(*groups, from, to, dragonfly == DragonflyRouting::kValiant, flow, links);
  } else {
    AppendPath(std::get<Torus>(fabric.kind), from, to, links);
  }
}

bool HasChoice(const Fabric& fabric, DragonflyRouting dragonfly) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return clos->levels.size() > 1;
  return std::holds_alternative<Dragonfly>(fabric.kind) && dragonfly == DragonflyRouting::kValiant;
}

}  // namespace rehearse
