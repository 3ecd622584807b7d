// The fabric between machines: which switches there are, where a machine's ports are cabled, and
// the way from one switch to another by arithmetic. A fabric is described by a FabricSpec (data)
// and, once drawn, by a Fabric (where its parts lie in the graph). One file per kind; a new kind is
// a file, a member of the two variants and a line in fabric.cc.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "topology/fabrics/fabric_clos.h"
#include "topology/fabrics/fabric_dragonfly.h"
#include "topology/fabrics/fabric_torus.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

using FabricSpec = std::variant<ClosSpec, DragonflySpec, TorusSpec>;

struct Fabric {
  std::variant<Clos, Dragonfly, Torus> kind;
  VertexId first_switch = 0;  // where machines are cabled; numbered from there
  RoutingRule routing;        // its own
};

// Draws the fabric for `machines` with `ports` each, without the cables to the machines. Throws
// Error for a routing that the fabric does not support.
Fabric AddFabric(ClusterBuilder& cluster, const FabricSpec& spec, uint32_t machines,
                 uint32_t ports);

// What it can do; the row of the table.
FabricChoices ChoicesOf(const Fabric& fabric);

// Checks that the fabric (none: drawn vertex by vertex, or one machine alone) can be routed this
// way. Throws Error, saying which routings it takes.
void CheckRouting(const FabricRouting& routing, const Fabric* fabric, bool is_drawn);

// The switch of a machine's port, counted from first_switch.
uint32_t SwitchOfPort(const Fabric& fabric, uint32_t machine, uint32_t port);

// The tree of a port: only machines lead from one tree to another. 0 if everything is one tree.
uint32_t TreeOf(const Fabric& fabric, uint32_t port);
// Whether ports with the same number meet sooner than others, or only they meet.
bool HasRails(const Fabric& fabric);
// Whether two ports of a machine are on one rail, if there are any.
bool AreOnOneRail(const Fabric& fabric, uint32_t port, uint32_t other);

// Appends the links between two such switches, as drawn. `flow` is a hash of who sends to whom,
// seed included; `load` is needed only by flowlet, and is updated (AppendLeastLoaded). CHECKs that
// the way is not sprayed.
void AppendPath(const Fabric& fabric, uint32_t from, uint32_t to, RouteChoice choice, uint64_t flow,
                std::vector<uint32_t>* load, std::vector<uint32_t>* links);

// Whether packets between these switches are sprayed over trunks; AppendTrunks() then says which.
bool IsSprayed(const Fabric& fabric, RouteChoice choice, uint32_t from, uint32_t to);
void AppendTrunks(const Fabric& fabric, uint32_t from, uint32_t to, std::vector<uint32_t>* trunks);

// Whether some two of its switches have several equal ways between them.
bool HasEqualWays(const Fabric& fabric);

// Where the way between two switches is cut: how many others lead round, each sprayed over trunks;
// AppendWayRound() appends those of one, `which` of them (any number).
uint32_t WaysRound(const Fabric& fabric, uint32_t from, uint32_t to);
void AppendWayRound(const Fabric& fabric, uint32_t from, uint32_t to, uint64_t which,
                    std::vector<uint32_t>* trunks);

// Appends what the switch of a machine's port is in, part by part: the sprayed ways between two
// switches depend only on which of these they share. Returns false, and appends nothing, for
// fabrics whose ways depend on more.
bool AppendBlocks(const Fabric& fabric, uint32_t from, std::vector<uint32_t>* blocks);

uint32_t TrunkCount(const Fabric& fabric);
std::vector<uint32_t> CablesOfTrunk(const Fabric& fabric, uint32_t trunk);  // as drawn
// The switches, counted from first_switch, that stand for what a trunk joins, if these are not the
// first cable's.
std::optional<std::pair<uint32_t, uint32_t>> HubsOfTrunk(const Fabric& fabric, uint32_t trunk);

// Whether flows between the same two switches may differ.
bool HasChoice(const Fabric& fabric, RouteChoice choice);

}  // namespace rehearse
