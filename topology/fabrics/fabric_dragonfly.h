// Dragonflies (Kim, Dally, Scott, Abts 2008): groups of switches; all groups joined by
// global cables.
//
// Inside a group the switches are the points of a grid, and along each dimension every two of them
// are joined (one dimension: all to all, like Slingshot; two: a flattened butterfly, like Aries).
// Local routes correct one dimension after the other. Machine m of a group has its port p on switch
// (m / machines_per_switch)·ports + p.
//
// A group's global cables are shared out evenly among the other groups that exist: a smaller
// machine keeps the global bandwidth of a group, as if its site had cabled it that way (in a
// partition of a larger machine, adaptive routing reaches the same cables by way of the groups that
// are not drawn). Those to one group are bundled into at most one bundle per switch. Bundle j
// between groups g and h ends, in each of them, at switch (s·bundles + j) mod switches, where s is
// the other group's place among the others.
//
// Sprayed, all bundles between two groups are one trunk, and so are all local cables out of a
// switch and all into it, by which it reaches the bundles that end elsewhere.
//
// Minimal routes: the switch of the sender, s, takes bundle s mod bundles: at most local, global,
// local. Valiant (1982) goes by way of a third group, chosen by the flow: it spreads traffic that
// would meet on one bundle, at twice the global load. Real dragonflies choose between the two by
// load. The load is not known when we route, so local pairs are given the bandwidth that adaptive
// routing reaches between two switches, not that of their one cable.
// A HyperX (Ahn, Binkert, Davis, McLaren & Schreiber, SC 2009) is one such group and nothing else:
// every dimension joined all to all, routes in the order of the dimensions. Valiant routes go by
// way of a switch that the flow chooses. All its switches are drawn, used or not.
#pragma once

#include <utility>
#include <vector>

#include "topology/cluster/builder.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

struct DragonflySpec {
  struct Dimension {
    uint32_t size = 1;
    ClusterLink link;  // between every two switches along it, each way
  };
  std::vector<Dimension> local;
  uint32_t machines_per_switch = 1;
  uint32_t global_cables = 1;  // that leave each group
  ClusterLink global;          // one of them
  RoutingRule routing;         // spray unless said otherwise
  bool is_hyperx = false;      // one group and no more; without global cables
};

struct Dragonfly {
  struct Dimension {
    uint32_t size = 1;
    uint32_t stride = 1;
    uint32_t first_link = 0;  // offset within a group
  };
  std::vector<Dimension> local;
  uint32_t ports = 1;
  uint32_t machines_per_switch = 1;
  uint32_t machines_per_group = 1;
  uint32_t switches_per_group = 1;
  uint32_t groups = 1;
  uint32_t first_local_link = 0;
  uint32_t local_links_per_group = 0;
  uint32_t first_global_link = 0;
  uint32_t bundles = 1;  // between two groups
  bool is_hyperx = false;
};

// Adds switches and cables. Throws Error when a group's switches are not a whole number of blocks
// of `ports`.
Dragonfly AddDragonfly(ClusterBuilder& cluster, const DragonflySpec& spec, uint32_t machines,
                       uint32_t ports, VertexId* first_switch);

uint32_t SwitchOf(const Dragonfly& dragonfly, uint32_t machine, uint32_t port);

// Appends the links from one switch to another. `valiant` is for switches of different groups,
// of at least 3.
void AppendPath(const Dragonfly& dragonfly, uint32_t from, uint32_t to, bool valiant, uint64_t flow,
                std::vector<uint32_t>* links);

// The trunks between switches of different groups, sprayed.
void AppendTrunks(const Dragonfly& dragonfly, uint32_t from, uint32_t to,
                  std::vector<uint32_t>* trunks);
bool AreInOneGroup(const Dragonfly& dragonfly, uint32_t from, uint32_t to);

// Where that way is cut: within a group over all other switches, as adaptive routing goes, if the
// two have neighbours in common (they differ in at most two dimensions); to another group over each
// of the groups that are neither.
uint32_t WaysRound(const Dragonfly& dragonfly, uint32_t from, uint32_t to);
void AppendWayRound(const Dragonfly& dragonfly, uint32_t from, uint32_t to, uint64_t which,
                    std::vector<uint32_t>* trunks);

// Appends where a switch is: itself, its lines of each dimension across the others, its group. All
// bundles between two groups are equal, and so are all switches of a group: the sprayed ways
// between two switches depend only on which of these they share.
void AppendBlocks(const Dragonfly& dragonfly, uint32_t from, std::vector<uint32_t>* blocks);

uint32_t TrunkCount(const Dragonfly& dragonfly);
// Cables of a trunk, as drawn.
std::vector<uint32_t> CablesOfTrunk(const Dragonfly& dragonfly, uint32_t trunk);
// The switches that a trunk joins, the first of a group for all of it.
std::pair<uint32_t, uint32_t> HubsOfTrunk(const Dragonfly& dragonfly, uint32_t trunk);

}  // namespace rehearse
