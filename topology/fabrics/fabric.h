// The fabric between machines: which switches there are, where a machine's ports are cabled, and
// the way from one switch to another by arithmetic. A fabric is described by a FabricSpec (data)
// and, once drawn, by a Fabric (where its parts lie in the graph). One file a kind; a new one is a
// file, a member of the two variants and a line in fabric.cc.
#pragma once

#include <variant>
#include <vector>

#include "topology/fabrics/fabric_clos.h"
#include "topology/fabrics/fabric_dragonfly.h"
#include "topology/fabrics/fabric_torus.h"

namespace rehearse {

using FabricSpec = std::variant<ClosSpec, DragonflySpec, TorusSpec>;

struct Fabric {
  std::variant<Clos, Dragonfly, Torus> kind;
  VertexId first_switch = 0;  // where machines are cabled; numbered from there
};

enum class DragonflyRouting : uint8_t { kMinimal, kValiant };

struct FabricRouting {
  DragonflyRouting dragonfly = DragonflyRouting::kMinimal;
  uint64_t seed = 0;  // of ECMP and Valiant
};

// Draws the fabric for `machines` with `ports` each, without the cables to the machines.
Fabric AddFabric(ClusterBuilder& cluster, const FabricSpec& spec, uint32_t machines,
                 uint32_t ports);

// The switch of a machine's port, counted from first_switch.
uint32_t SwitchOfPort(const Fabric& fabric, uint32_t machine, uint32_t port);

// Appends the links between two such switches. `flow` is a hash of who sends to whom,
// seed included.
void AppendPath(const Fabric& fabric, uint32_t from, uint32_t to, DragonflyRouting dragonfly,
                uint64_t flow, std::vector<uint32_t>* links);

// Whether flows between the same two switches may differ.
bool HasChoice(const Fabric& fabric, DragonflyRouting dragonfly);

}  // namespace rehearse
