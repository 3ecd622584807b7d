#include "topology/fabrics/fabric.h"

#include <fmt/format.h>

namespace rehearse {

Fabric AddFabric(ClusterBuilder& cluster, const FabricSpec& spec, uint32_t machines,
                 uint32_t ports) {
  Fabric fabric;
  fabric.routing.choice = RouteChoice::kDimensionOrder;
  if (const auto* clos = std::get_if<ClosSpec>(&spec)) {
    fabric.kind = AddClos(cluster, *clos, machines, ports, &fabric.first_switch);
    fabric.routing = clos->routing;
  } else if (const auto* dragonfly = std::get_if<DragonflySpec>(&spec)) {
    fabric.kind = AddDragonfly(cluster, *dragonfly, machines, ports, &fabric.first_switch);
    fabric.routing = dragonfly->routing;
  } else {
    if (ports != 1) throw Error("in a torus every machine has one port, to its router");
    fabric.kind = AddTorus(cluster, std::get<TorusSpec>(spec), machines, &fabric.first_switch);
  }
  CheckChoice(ChoicesOf(fabric), fabric.routing.choice);
  return fabric;
}

FabricChoices ChoicesOf(const Fabric& fabric) {
  if (std::holds_alternative<Clos>(fabric.kind)) return ChoicesOfFatTree();
  if (const auto* groups = std::get_if<Dragonfly>(&fabric.kind))
    return groups->is_hyperx ? ChoicesOfHyperX() : ChoicesOfDragonfly();
  return ChoicesOfTorus();
}

void CheckRouting(const FabricRouting& routing, const Fabric* fabric, bool is_drawn) {
  if (is_drawn && (routing.choice || routing.queue_pairs))
    throw Error(
        "the cluster was drawn link by link, so its routes are searched; expected no routing");
  if (fabric == nullptr) return;
  const RoutingRule rule = routing.Over(fabric->routing);
  CheckChoice(ChoicesOf(*fabric), rule.choice);
  if (routing.queue_pairs && rule.choice != RouteChoice::kEcmp)
    throw Error(
        fmt::format("queue pairs are hashed by routing \"ecmp\", found \"{}\"", Name(rule.choice)));
}

uint32_t SwitchOfPort(const Fabric& fabric, uint32_t machine, uint32_t port) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return LeafOf(*clos, machine, port);
  if (const auto* dragonfly = std::get_if<Dragonfly>(&fabric.kind))
    return SwitchOf(*dragonfly, machine, port);
  return machine;
}

uint32_t TreeOf(const Fabric& fabric, uint32_t port) {
  const auto* clos = std::get_if<Clos>(&fabric.kind);
  return clos == nullptr ? 0 : TreeOf(*clos, port);
}

bool HasRails(const Fabric& fabric) {
  const auto* clos = std::get_if<Clos>(&fabric.kind);
  return clos != nullptr && (clos->rails || clos->rail_only);
}

bool AreOnOneRail(const Fabric& fabric, uint32_t port, uint32_t other) {
  const auto* clos = std::get_if<Clos>(&fabric.kind);
  if (TreeOf(fabric, port) != TreeOf(fabric, other)) return false;
  return clos == nullptr || !clos->rails || RailOf(*clos, port) == RailOf(*clos, other);
}

void AppendPath(const Fabric& fabric, uint32_t from, uint32_t to, RouteChoice choice, uint64_t flow,
                std::vector<uint32_t>* load, std::vector<uint32_t>* links) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) {
    if (choice == RouteChoice::kFlowlet) {
      AppendLeastLoaded(*clos, from, to, flow, load, links);
    } else {
      AppendPath(*clos, from, to, flow, links);
    }
  } else if (const auto* groups = std::get_if<Dragonfly>(&fabric.kind)) {
    AppendPath(*groups, from, to, choice == RouteChoice::kValiant, flow, links);
  } else {
    AppendPath(std::get<Torus>(fabric.kind), from, to, links);
  }
}

bool IsSprayed(const Fabric& fabric, RouteChoice choice, uint32_t from, uint32_t to) {
  if (choice != RouteChoice::kSpray || from == to) return false;
  const auto* groups = std::get_if<Dragonfly>(&fabric.kind);
  return groups == nullptr || !AreInOneGroup(*groups, from, to);
}

void AppendTrunks(const Fabric& fabric, uint32_t from, uint32_t to, std::vector<uint32_t>* trunks) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) {
    AppendTrunks(*clos, from, to, trunks);
  } else {
    AppendTrunks(std::get<Dragonfly>(fabric.kind), from, to, trunks);
  }
}

bool HasEqualWays(const Fabric& fabric) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return clos->levels.size() > 1;
  const auto* groups = std::get_if<Dragonfly>(&fabric.kind);
  return groups != nullptr && groups->groups > 1;
}

uint32_t WaysRound(const Fabric& fabric, uint32_t from, uint32_t to) {
  const auto* groups = std::get_if<Dragonfly>(&fabric.kind);
  return groups == nullptr ? 0 : WaysRound(*groups, from, to);
}

void AppendWayRound(const Fabric& fabric, uint32_t from, uint32_t to, uint64_t which,
                    std::vector<uint32_t>* trunks) {
  AppendWayRound(std::get<Dragonfly>(fabric.kind), from, to, which, trunks);
}

bool AppendBlocks(const Fabric& fabric, uint32_t from, std::vector<uint32_t>* blocks) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) {
    AppendBlocks(*clos, from, blocks);
  } else if (const auto* groups = std::get_if<Dragonfly>(&fabric.kind)) {
    AppendBlocks(*groups, from, blocks);
  } else {
    return false;
  }
  return true;
}

uint32_t TrunkCount(const Fabric& fabric) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return TrunkCount(*clos);
  if (const auto* groups = std::get_if<Dragonfly>(&fabric.kind)) return TrunkCount(*groups);
  return 0;
}

std::vector<uint32_t> CablesOfTrunk(const Fabric& fabric, uint32_t trunk) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return CablesOfTrunk(*clos, trunk);
  return CablesOfTrunk(std::get<Dragonfly>(fabric.kind), trunk);
}

std::optional<std::pair<uint32_t, uint32_t>> HubsOfTrunk(const Fabric& fabric, uint32_t trunk) {
  const auto* groups = std::get_if<Dragonfly>(&fabric.kind);
  if (groups == nullptr) return std::nullopt;
  return HubsOfTrunk(*groups, trunk);
}

bool HasChoice(const Fabric& fabric, RouteChoice choice) {
  if (const auto* clos = std::get_if<Clos>(&fabric.kind)) return clos->levels.size() > 1;
  return std::holds_alternative<Dragonfly>(fabric.kind) && choice == RouteChoice::kValiant;
}

}  // namespace rehearse
