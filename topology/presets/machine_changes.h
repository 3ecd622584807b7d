// What may be changed in the machines and the fabric of any preset, beside its parameters: another
// number of NICs, faster ones, another fabric.
#pragma once

#include <cstdint>
#include <optional>

#include "topology/presets/machine.h"

namespace rehearse {

enum class FabricWord : uint8_t { kSwitch, kFatTree, kRails, kRailOnly };

struct NicChanges {
  std::optional<uint32_t> nics;       // of a machine
  std::optional<BytesPerSecond> nic;  // the cable of each port of a NIC, or of each device
  std::optional<uint32_t> nic_ports;  // of each NIC
};

// Of switches in levels.
struct TreeChanges {
  std::optional<FabricWord> kind;
  std::optional<uint32_t> radix;
  std::optional<uint32_t> levels;
  std::optional<double> oversubscription;
  std::optional<uint32_t> planes;
  std::optional<RouteChoice> routing;
};

struct MachineChanges {
  NicChanges nics;
  TreeChanges tree;
  std::optional<FabricSpec> fabric;  // instead of the preset's; `tree` then says nothing
};

// What users call them, in files and behind a preset's name.
inline constexpr const char* kMachineChangeKeys[] = {
    "nics",   "nic",    "nic_ports", "fabric", "radix", "levels", "oversubscription",
    "planes", "routing"};

// A faster NIC has faster cables in a fabric of levels, too, since its switches' ports are of one
// speed. A kind of fabric has switches of 64 ports and cables as the NICs', unless the preset's
// fabric has levels already: then it keeps what is not said. What the preset's notes say of its
// fabric goes where that is changed. Throws Error for NICs of machines that have none, and for
// levels of a fabric without.
void ChangeMachine(const MachineChanges& changes, MachineSpec* machine);

}  // namespace rehearse
