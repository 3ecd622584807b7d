// Folded Clos networks: one switch, leaf and spine, fat trees of any depth, with rails or without.
//
// Level 1 are the leaves, level L the top. A switch of radix r has, at the leaves, `down` ports for
// machines and `up` towards the spines, down/up being the oversubscription; in between r/2 each
// way; at the top all r downwards. A level-i block, seen from above, is a switch of level i with
// all it reaches downwards: it consists of W_i = up·(r/2)^(i-2) equal switches, each joined by one
// cable to each of its parents. A tree has as many blocks as its machines need, but always all the
// parallel switches of the levels above, so that no bandwidth is lost (a real site would use
// thicker bundles to fewer switches).
//
// Machines are cabled to the leaves in their order, port by port. A leaf takes whole machines: as
// many as fit into its ports, with as many cables up as these need; what is left over is idle, and
// the cluster's notes say so. (If it were filled, machines would lie across two leaves, and no two
// of them would be alike.) A machine with more ports than a leaf has takes several. With `rails`,
// port p of every machine is cabled to a leaf of rail p, so that equal ports of neighbouring
// machines meet at their leaf (NVIDIA DGX SuperPOD reference architecture). Where there are fewer
// rails than ports, port p is of rail p mod rails, as in racks of trays with a few NICs each (the
// same for GB200, GB300); a leaf then has whole machines. Several trees may stand side by side
// without a cable between them: planes, where port p of a machine is in plane p mod planes, like
// the ports of NICs that have two (Alibaba's HPN, SIGCOMM 2024); or rails, where port p is in tree
// p (Wang et al., "Rail-only", Hot Interconnects 2024). Only machines lead from one tree to
// another.
//
// Routes go up to the lowest block that both leaves have in common and down again, which is the
// shortest way. Which of the parallel switches they take is the routing's choice at every level
// (topology/fabrics/routing.h). Sprayed they take all of them: all cables of a block upwards are
// one trunk, all that lead down to it another.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "topology/cluster/builder.h"
#include "topology/fabrics/flow_hash.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

inline constexpr uint32_t kMostClosLevels = 6;

struct ClosSpec {
  uint32_t radix = 64;          // even
  uint32_t levels = 0;          // 0: as few as the machines need
  double oversubscription = 1;  // at the leaves, at least 1
  bool rails = false;
  uint32_t rail_count = 0;     // 0: a rail for each port of a machine
  bool rail_only = false;      // each rail is a tree of its own
  uint32_t planes = 1;         // trees, if it is not
  bool whole_machines = true;  // at a leaf, if any fits; false: all its ports are used
  RoutingRule routing;         // spray unless said otherwise
  ClusterLink cable;           // between switches, each way
  std::string hub = "fabric";  // the only switch's name when one is enough
};

// One switch that passes everything that its ports do: for fabrics that we do not know, or need not
// know.
ClosSpec OneSwitch(const std::string& name = "fabric");

// The tree as it was drawn: where its switches and links are, by arithmetic.
struct Clos {
  struct Level {
    uint32_t blocks = 1;       // of all trees, tree by tree
    uint32_t width = 1;        // W: equal switches in a block
    uint32_t children = 1;     // blocks below that one block here joins
    uint32_t parents = 0;      // cables of a switch upwards; 0 at the top
    uint32_t first_link = 0;   // of the cables upwards
    uint32_t first_trunk = 0;  // of block 0 upwards; downwards the next one; then block 1's
  };
  std::vector<Level> levels;  // leaves first
  uint32_t trees = 1;
  uint32_t ports = 1;           // of a machine
  uint32_t machines_down = 1;   // with rails: machines per leaf
  uint32_t rail_count = 1;      // likewise; of a tree
  uint32_t ports_down = 1;      // without: ports per leaf
  bool rails = false;           // leaves of a rail, within a tree
  bool rail_only = false;       // a tree for each port
  double oversubscription = 1;  // as asked for: one level has none
};

// How many trees a spec has for machines of that many ports. Throws Error if the ports cannot be
// dealt to them evenly.
uint32_t TreesFor(const ClosSpec& spec, uint32_t ports);

// The tree of a machine's port: all ports in one tree lead to each other, and to no others.
inline uint32_t TreeOf(const Clos& clos, uint32_t port) { return port % clos.trees; }
// With rails: which one of its tree.
inline uint32_t RailOf(const Clos& clos, uint32_t port) {
  return port / clos.trees % clos.rail_count;
}

// Adds the switches and their cables. `first_switch` receives the vertex of leaf 0; the others
// follow. Throws Error when the radix is too small for that many machines, saying how many would
// fit.
Clos AddClos(ClusterBuilder& cluster, const ClosSpec& spec, uint32_t machines, uint32_t ports,
             VertexId* first_switch);

// The block above a block of that level.
inline uint32_t ParentOf(const Clos& clos, size_t level, uint32_t block) {
  const uint32_t of_tree = clos.levels[level].blocks / clos.trees;
  return block / of_tree * (clos.levels[level + 1].blocks / clos.trees) +
         block % of_tree / clos.levels[level + 1].children;
}

uint32_t LeafOf(const Clos& clos, uint32_t machine, uint32_t port);

// Appends the block of each level that a leaf is in, itself first. The sprayed ways between two
// leaves depend only on which of these they share.
void AppendBlocks(const Clos& clos, uint32_t leaf, std::vector<uint32_t>* blocks);

// Appends the links from one leaf to another of its tree; nothing if they are the same. By ECMP.
void AppendPath(const Clos& clos, uint32_t from, uint32_t to, uint64_t flow,
                std::vector<uint32_t>* links);

// The same by flowlets: every other flow takes the hash's cable, as all do while queues are empty;
// the others take that which is least loaded, up and down, and the hash decides among equals.
// `load` is by link of the cluster as drawn; the links taken get one more.
void AppendLeastLoaded(const Clos& clos, uint32_t from, uint32_t to, uint64_t flow,
                       std::vector<uint32_t>* load, std::vector<uint32_t>* links);

// The trunks of the same, sprayed.
void AppendTrunks(const Clos& clos, uint32_t from, uint32_t to, std::vector<uint32_t>* trunks);

// Which of the cables upwards a flow takes at a level, by ECMP.
inline uint32_t HashedCable(uint64_t flow, uint32_t level, uint32_t cables) {
  return static_cast<uint32_t>(Mix(flow + level) % cables);
}

// The ways of AppendPath() between two leaves, for code that looks at very many flows between them.
class HashedWays {
 public:
  HashedWays(const Clos& clos, uint32_t from, uint32_t to);

  // visit(link) for each link of the flow's way, each cable upwards before the one that comes down
  // to its level again.
  template <typename Visit>
  void ForEachLink(uint64_t flow, const Visit& visit) const {
    uint32_t member = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const Level& level = levels_[i];
      const uint32_t up = HashedCable(flow, i, level.parents);
      const uint32_t cable = 2 * (member * level.parents + up);
      visit(level.first_up + cable);
      visit(level.first_down + cable);
      member += level.width * up;
    }
  }

 private:
  struct Level {
    uint32_t parents = 0;
    uint32_t width = 1;
    uint32_t first_up = 0;  // of the block's first switch
    uint32_t first_down = 0;
  };
  std::array<Level, kMostClosLevels> levels_;
  uint32_t count_ = 0;
};

uint32_t TrunkCount(const Clos& clos);
// Cables of a trunk, as drawn.
std::vector<uint32_t> CablesOfTrunk(const Clos& clos, uint32_t trunk);

}  // namespace rehearse
