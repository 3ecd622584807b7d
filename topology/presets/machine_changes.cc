#include "topology/presets/machine_changes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

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

// The first key of those of levels that was given; null if none was.
const char* FirstOfLevels(const TreeChanges& changes) {
  if (changes.radix) return "radix";
  if (changes.levels) return "levels";
  if (changes.oversubscription) return "oversubscription";
  if (changes.planes) return "planes";
  return changes.routing ? "routing" : nullptr;
}

void ChangeTree(const TreeChanges& changes, MachineSpec* machine) {
  if (changes.kind) ChangeKind(*changes.kind, machine);
  const char* key = FirstOfLevels(changes);
  if (key == nullptr) return;
  ClosSpec* clos = LevelsOf(machine);
  if (clos == nullptr && machine->fabric) {
    auto* dragonfly = std::get_if<DragonflySpec>(&*machine->fabric);
    if (dragonfly != nullptr && changes.routing) {
      dragonfly->routing.choice = *changes.routing;
      if (std::string_view(key) == "routing") return;
    }
  }
  if (clos == nullptr)
    throw Error(fmt::format(
        "the fabric of {} is {}, {} \"{}\"; give another \"fabric\" as well: fat-tree, rails or "
        "rail-only",
        machine->name, InWords(machine->fabric),
        std::string_view(key) == "routing" ? "whose paths leave no choice for" : "which has no",
        key));
  if (changes.radix) clos->radix = *changes.radix;
  if (changes.levels) clos->levels = *changes.levels;
  if (changes.oversubscription) clos->oversubscription = *changes.oversubscription;
  if (changes.planes) clos->planes = *changes.planes;
  if (changes.routing) clos->routing.choice = *changes.routing;
}

// Whether all that presets say of their fabrics is as it was.
bool IsAsBefore(const FabricSpec& before, const FabricSpec& now) {
  const auto* old = std::get_if<ClosSpec>(&before);
  const auto* clos = std::get_if<ClosSpec>(&now);
  if (old == nullptr || clos == nullptr) return before.index() == now.index();
  const auto figures = [](const ClosSpec& spec) {
    return std::tuple(spec.radix, spec.levels, spec.oversubscription, spec.rails, spec.rail_count,
                      spec.rail_only, spec.planes, spec.routing.choice);
  };
  return figures(*old) == figures(*clos);
}

// Notes of presets that say what the fabric is begin so.
bool IsOfFabric(const std::string& note) {
  constexpr const char* kBeginnings[] = {
      "Rails on ",         "A plain fat tree ",       "The fabric is ", "Two switches of a group ",
      "A group keeps all", "The dragonfly's groups ", "The cells of ",  "Every router "};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](const char* beginning) { return note.starts_with(beginning); });
}

}  // namespace

void ChangeMachine(const MachineChanges& changes, MachineSpec* machine) {
  const std::optional<FabricSpec> before = machine->fabric;
  ChangeNics(changes.nics, machine);
  if (changes.fabric) machine->fabric = changes.fabric;
  ChangeTree(changes.tree, machine);
  const bool is_changed =
      changes.fabric || (before && machine->fabric && !IsAsBefore(*before, *machine->fabric));
  if (is_changed) std::erase_if(machine->notes, IsOfFabric);
}

}  // namespace rehearse
