#include "topology/presets/machine_changes.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

// The fabric's levels of switches; null if it has none: one switch, groups, a grid.
ClosSpec* LevelsOf(MachineSpec* machine) {
  auto* clos = machine->fabric ? std::get_if<ClosSpec>(&*machine->fabric) : nullptr;
  static const uint32_t one_switch = OneSwitch().radix;
  return clos == nullptr || clos->radix == one_switch ? nullptr : clos;
}

void ChangeNics(const NicChanges& changes, MachineSpec* machine) {
  NodeSpec& node = machine->node;
  Host* host = node.host && node.host->nics > 0 ? &*node.host : nullptr;
  if (changes.nics || changes.nic_ports) {
    if (host == nullptr)
      throw Error(fmt::format("the machines of {} have no NICs, {}", machine->name,
                              node.cable ? "since the fabric's cables end at their devices"
                                         : "since nothing joins them"));
    host->nics = changes.nics.value_or(host->nics);
    host->nic_ports = changes.nic_ports.value_or(host->nic_ports);
  }
  if (!changes.nic) return;
  if (!node.cable)
    throw Error(
        fmt::format("the machines of {} have no NICs, since nothing joins them", machine->name));
  if (ClosSpec* clos = LevelsOf(machine))
    clos->cable.bandwidth = clos->cable.bandwidth * (*changes.nic / node.cable->bandwidth);
  node.cable->bandwidth = *changes.nic;
}

void ChangeKind(FabricWord kind, MachineSpec* machine) {
  if (!machine->node.cable)
    throw Error(
        fmt::format("{} is one machine alone, which no fabric joins to others", machine->name));
  if (kind == FabricWord::kSwitch) {
    machine->fabric = OneSwitch();
    return;
  }
  if (LevelsOf(machine) == nullptr) {
    ClosSpec clos;
    clos.cable = MakeLink(LinkKind::kNetwork, machine->node.cable->bandwidth,
                          machine->node.cable->efficiency, Seconds(0));
    machine->fabric = clos;
  }
  ClosSpec& clos = *LevelsOf(machine);
  if (kind != FabricWord::kRails) clos.rail_count = 0;
  clos.rails = kind == FabricWord::kRails;
  clos.rail_only = kind == FabricWord::kRailOnly;
}

const char* InWords(const std::optional<FabricSpec>& fabric) {
  if (!fabric) return "none";
  if (const auto* groups = std::get_if<DragonflySpec>(&*fabric))
    return groups->is_hyperx ? "a HyperX" : "a dragonfly";
  return std::holds_alternative<TorusSpec>(*fabric) ? "a torus" : "one switch";
}

void ChangeTree(const TreeChanges& changes, MachineSpec* machine) {
  if (changes.kind) ChangeKind(*changes.kind, machine);
  const bool has_more = changes.radix || changes.levels || changes.oversubscription ||
                        changes.planes || changes.routing;
  if (!has_more) return;
  ClosSpec* clos = LevelsOf(machine);
  if (clos == nullptr && changes.routing && machine->fabric) {
    if (auto* dragonfly = std::get_if<DragonflySpec>(&*machine->fabric)) {
      dragonfly->routing.choice = *changes.routing;
      if (!changes.radix && !changes.levels && !changes.oversubscription && !changes.planes) return;
    }
  }
  if (clos == nullptr)
    throw Error(fmt::format(
        "the fabric of {} is {}, which has no \"radix\", \"levels\", \"oversubscription\" and "
        "\"planes\"; give another \"fabric\" as well: fat-tree, rails or rail-only",
        machine->name, InWords(machine->fabric)));
  if (changes.radix) clos->radix = *changes.radix;
  if (changes.levels) clos->levels = *changes.levels;
  if (changes.oversubscription) clos->oversubscription = *changes.oversubscription;
  if (changes.planes) clos->planes = *changes.planes;
  if (changes.routing) clos->routing.choice = *changes.routing;
}

}  // namespace

void ChangeMachine(const MachineChanges& changes, MachineSpec* machine) {
  ChangeNics(changes.nics, machine);
  if (changes.fabric) machine->fabric = changes.fabric;
  ChangeTree(changes.tree, machine);
}

}  // namespace rehearse
