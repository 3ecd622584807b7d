#include "topology/fabrics/fabric_clos.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/fabric_limit.h"

namespace rehearse {
namespace {

uint32_t CeilDivide(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

// The tree of that many levels for these machines; its top may be several blocks when
// it is too small.
Clos Shape(const ClosSpec& spec, uint32_t levels, uint32_t machines, uint32_t ports) {
  Clos clos;
  clos.trees = TreesFor(spec, ports);
  clos.ports = ports;
  clos.rails = spec.rails && !spec.rail_only;  // a tree for a single rail has none
  clos.rail_only = spec.rail_only;
  clos.oversubscription = spec.oversubscription;
  const uint32_t own_ports = ports / clos.trees;
  const double o = spec.oversubscription;
  auto up = levels == 1 ? 0u : std::max(1u, static_cast<uint32_t>(spec.radix / (1 + o)));
  uint32_t down = spec.radix - up;
  if (levels > 1 && !clos.rails && spec.whole_machines && own_ports > 0 && own_ports <= down) {
    down -= down % own_ports;
    up = std::clamp(static_cast<uint32_t>(down / o), 1u, up);
  }
  clos.rail_count = clos.rails && spec.rail_count > 0 ? spec.rail_count : own_ports;
  // Of each rail, a machine's ports are on one leaf.
  clos.machines_down = down / std::max(1u, CeilDivide(own_ports, std::max(1u, clos.rail_count)));
  clos.ports_down = down;
  const uint64_t all_ports = uint64_t{machines} * own_ports;
  Clos::Level leaf;
  if (levels == 1) {
    leaf.blocks = CeilDivide(all_ports, down);
    clos.rails = false;  // all are on one switch
  } else {
    leaf.blocks = clos.rails ? CeilDivide(machines, clos.machines_down) * clos.rail_count
                             : CeilDivide(all_ports, down);
  }
  leaf.blocks *= clos.trees;
  leaf.parents = up;
  clos.levels.push_back(leaf);
  for (uint32_t i = 1; i < levels; ++i) {
    const Clos::Level& below = clos.levels.back();
    const bool is_top = i + 1 == levels;
    Clos::Level level;
    level.children = is_top ? spec.radix : spec.radix / 2;
    level.blocks = CeilDivide(below.blocks / clos.trees, level.children) * clos.trees;
    // A tree that overflows here is far too large in any case.
    level.width = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{below.width} * below.parents, kMostFabricCables));
    level.parents = is_top ? 0 : spec.radix / 2;
    level.first_trunk = below.first_trunk + 2 * below.blocks;
    clos.levels.push_back(level);
  }
  return clos;
}

void CheckRails(const ClosSpec& spec, uint32_t ports) {
  if (spec.rail_count == 0 || ports == 0) return;
  const uint32_t own = ports / TreesFor(spec, ports);
  if (own % spec.rail_count != 0)
    throw Error(
        fmt::format("{} rails need as many ports per machine{}, or a multiple of that, found {}",
                    spec.rail_count, spec.planes > 1 ? " and plane" : "", own));
  const auto up = static_cast<uint32_t>(spec.radix / (1 + spec.oversubscription));
  if (own / spec.rail_count > spec.radix - up)
    throw Error(
        fmt::format("a machine has {} ports on each of {} rails, but a leaf has {} for machines",
                    own / spec.rail_count, spec.rail_count, spec.radix - up));
}

uint64_t PortsOf(ClosSpec spec, uint32_t levels, uint32_t own_ports) {
  spec.planes = 1;  // the shape of one tree
  spec.rail_only = false;
  const Clos clos = Shape(spec, levels, 1, own_ports);
  uint64_t ports = clos.ports_down;
  for (size_t i = 1; i < clos.levels.size(); ++i) ports *= clos.levels[i].children;
  return ports;
}

// Ports of leaves that whole machines leave over.
void SayWhatIsIdle(const Clos& clos, const ClosSpec& spec, ClusterBuilder& cluster) {
  const uint32_t ports = clos.ports / clos.trees;
  const uint32_t idle = spec.radix - clos.ports_down - clos.levels.front().parents;
  if (clos.levels.size() == 1 || clos.rails || ports <= 1 || idle <= 1) return;
  cluster.AddNote(fmt::format(
      "{} of the {} ports of a leaf are idle: it takes {} whole machines of {} ports, and {} "
      "cables up (\"whole_nodes\": false fills it)",
      idle, spec.radix, clos.ports_down / ports, ports, clos.levels.front().parents));
}

// "leaf3", "rail0/leaf3", "pod2/spine5", "core7".
std::string NameOf(const Clos& clos, const ClosSpec& spec, uint32_t level, uint32_t block,
                   uint32_t member) {
  const auto top = static_cast<uint32_t>(clos.levels.size()) - 1;
  const uint32_t of_tree = clos.levels[level].blocks / clos.trees;
  std::string tree;
  if (clos.trees > 1)
    tree = fmt::format("{}{}/", spec.rail_only ? "rail" : "plane", block / of_tree);
  block %= of_tree;
  if (top == 0) return tree + spec.hub;
  if (level == 0) {
    const uint32_t rails = clos.rail_count;
    return tree + (clos.rails ? fmt::format("rail{}/leaf{}", block % rails, block / rails)
                              : fmt::format("leaf{}", block));
  }
  if (level == top) return fmt::format("{}{}{}", tree, top == 1 ? "spine" : "core", member);
  return tree + (level == 1 ? fmt::format("pod{}/spine{}", block, member)
                            : fmt::format("level{}/block{}/switch{}", level + 1, block, member));
}

}  // namespace

uint32_t TreesFor(const ClosSpec& spec, uint32_t ports) {
  if (spec.rail_only) return std::max(1u, ports);
  if (spec.planes > 1 && (ports == 0 || ports % spec.planes != 0))
    throw Error(
        fmt::format("{} planes need as many ports per machine, or a multiple of that, found {}",
                    spec.planes, ports));
  return spec.planes;
}

ClosSpec OneSwitch(const std::string& name) {
  ClosSpec spec;
  spec.radix = 1u << 30;
  spec.levels = 1;
  spec.hub = name;
  return spec;
}

Clos AddClos(ClusterBuilder& cluster, const ClosSpec& spec, uint32_t machines, uint32_t ports,
             VertexId* first_switch) {
  if (spec.radix < 4 || spec.radix % 2 != 0)
    throw Error(fmt::format("a fat tree needs switches with an even radix of at least 4, not {}",
                            spec.radix));
  if (!(spec.oversubscription >= 1 && spec.oversubscription <= spec.radix - 1))
    throw Error(
        fmt::format("oversubscription {} is not between 1 and radix - 1", spec.oversubscription));
  CheckRails(spec, ports);
  uint32_t levels = spec.levels == 0 ? 1 : spec.levels;
  Clos clos = Shape(spec, levels, machines, ports);
  while (spec.levels == 0 && clos.levels.back().blocks > clos.trees && levels < kMostClosLevels)
    clos = Shape(spec, ++levels, machines, ports);
  if (clos.levels.back().blocks > clos.trees)
    throw Error(fmt::format(
        "a fat tree of {} levels of radix {} has {} ports, but {} machines have {}; give it more "
        "levels or a larger radix",
        levels, spec.radix, PortsOf(spec, levels, ports / clos.trees), machines,
        uint64_t{machines} * (ports / clos.trees)));

  double cables = 0;
  for (size_t i = 0; i + 1 < clos.levels.size(); ++i)
    cables += 1.0 * clos.levels[i].blocks * clos.levels[i].width * clos.levels[i].parents;
  CheckFabricSize(cables);

  std::vector<VertexId> first;  // of each level
  for (uint32_t level = 0; level < levels; ++level) {
    first.push_back(cluster.vertex_count());
    for (uint32_t block = 0; block < clos.levels[level].blocks; ++block)
      for (uint32_t member = 0; member < clos.levels[level].width; ++member)
        cluster.AddVertex({NameOf(clos, spec, level, block, member), VertexKind::kSwitch, ""});
  }
  *first_switch = first[0];
  SayWhatIsIdle(clos, spec, cluster);
  for (uint32_t i = 0; i + 1 < levels; ++i) {
    Clos::Level& level = clos.levels[i];
    const Clos::Level& above = clos.levels[i + 1];
    level.first_link = cluster.link_count();
    VertexId below = first[i];
    for (uint32_t block = 0; block < level.blocks; ++block) {
      const VertexId parents = first[i + 1] + VertexId{ParentOf(clos, i, block)} * above.width;
      for (uint32_t member = 0; member < level.width; ++member, ++below)
        for (VertexId up = 0; up < level.parents; ++up)
          cluster.AddLinks(below, parents + member + up * level.width, spec.cable);
    }
  }
  return clos;
}

uint32_t LeafOf(const Clos& clos, uint32_t machine, uint32_t port) {
  const uint32_t ports = clos.ports / clos.trees;
  const uint32_t own = port / clos.trees;
  const uint32_t leaf =
      clos.rails ? machine / clos.machines_down * clos.rail_count + RailOf(clos, port)
                 : static_cast<uint32_t>((uint64_t{machine} * ports + own) / clos.ports_down);
  return TreeOf(clos, port) * (clos.levels.front().blocks / clos.trees) + leaf;
}

void AppendBlocks(const Clos& clos, uint32_t leaf, std::vector<uint32_t>* blocks) {
  blocks->push_back(leaf);
  for (size_t level = 0; level + 1 < clos.levels.size(); ++level)
    blocks->push_back(ParentOf(clos, level, blocks->back()));
}

namespace {

// What a switch chooses among at one level: its cables upwards and those by which the way comes
// down again into the target's block. The u-th up goes with the u-th down, 2·u further on.
struct Cables {
  uint32_t level = 0;
  uint32_t count = 0;
  uint32_t first_up = 0;
  uint32_t first_down = 0;
};

// Up to the block that both leaves have in common and down again; choose(cables) < count.
template <typename Choose>
void Climb(const Clos& clos, uint32_t from, uint32_t to, std::vector<uint32_t>* links,
           const Choose& choose) {
  // A cable's two directions are neighbours, up first.
  std::vector<uint32_t> down;
  uint32_t member = 0;
  uint32_t block = from;
  uint32_t target = to;
  for (uint32_t level = 0; block != target; ++level) {
    const Clos::Level& here = clos.levels[level];
    const auto first_of = [&](uint32_t of_block) {
      return here.first_link + 2 * ((of_block * here.width + member) * here.parents);
    };
    const Cables cables = {level, here.parents, first_of(block), first_of(target) + 1};
    const uint32_t up = choose(cables);
    links->push_back(cables.first_up + 2 * up);
    down.push_back(cables.first_down + 2 * up);
    member += here.width * up;
    block = ParentOf(clos, level, block);
    target = ParentOf(clos, level, target);
  }
  links->insert(links->end(), down.rbegin(), down.rend());
}

}  // namespace

void AppendPath(const Clos& clos, uint32_t from, uint32_t to, uint64_t flow,
                std::vector<uint32_t>* links) {
  Climb(clos, from, to, links,
        [&](const Cables& cables) { return HashedCable(flow, cables.level, cables.count); });
}

HashedWays::HashedWays(const Clos& clos, uint32_t from, uint32_t to) {
  for (uint32_t block = from, target = to; block != target; ++count_) {
    const Clos::Level& here = clos.levels[count_];
    const auto first_of = [&](uint32_t of_block) {
      return here.first_link + 2 * of_block * here.width * here.parents;
    };
    levels_[count_] = {here.parents, here.width, first_of(block), first_of(target) + 1};
    block = ParentOf(clos, count_, block);
    target = ParentOf(clos, count_, target);
  }
}

// Where a flow first meets several cables their queues are empty, and the hash decides; at its
// first pause it moves, every other time, to the least loaded.
static bool StaysWhereItIs(uint64_t flow, uint32_t level) {
  return HashedCable(Mix(flow), level, 2) == 0;
}

void AppendLeastLoaded(const Clos& clos, uint32_t from, uint32_t to, uint64_t flow,
                       std::vector<uint32_t>* load, std::vector<uint32_t>* links) {
  const size_t begin = links->size();
  Climb(clos, from, to, links, [&](const Cables& cables) {
    const auto load_of = [&](uint32_t u) {
      const uint32_t up = (*load)[cables.first_up + 2 * u];
      const uint32_t down = (*load)[cables.first_down + 2 * u];
      return std::pair(std::max(up, down), std::min(up, down));
    };
    const uint32_t first = HashedCable(flow, cables.level, cables.count);
    if (StaysWhereItIs(flow, cables.level)) return first;
    uint32_t best = first;
    for (uint32_t i = 1; i < cables.count; ++i) {
      const uint32_t u = (first + i) % cables.count;
      if (load_of(u) < load_of(best)) best = u;
    }
    return best;
  });
  for (size_t i = begin; i < links->size(); ++i) ++(*load)[(*links)[i]];
}

void AppendTrunks(const Clos& clos, uint32_t from, uint32_t to, std::vector<uint32_t>* trunks) {
  uint32_t level = 0;
  uint32_t block = from;
  std::vector<uint32_t> target = {to};
  while (block != target.back()) {
    trunks->push_back(clos.levels[level].first_trunk + 2 * block);
    block = ParentOf(clos, level, block);
    target.push_back(ParentOf(clos, level, target.back()));
    ++level;
  }
  while (level > 0) {
    --level;
    trunks->push_back(clos.levels[level].first_trunk + 2 * target[level] + 1);
  }
}

uint32_t TrunkCount(const Clos& clos) { return clos.levels.back().first_trunk; }

std::vector<uint32_t> CablesOfTrunk(const Clos& clos, uint32_t trunk) {
  size_t level = 0;
  while (trunk >= clos.levels[level + 1].first_trunk) ++level;
  const Clos::Level& here = clos.levels[level];
  const uint32_t block = (trunk - here.first_trunk) / 2;
  const uint32_t down = (trunk - here.first_trunk) % 2;
  const uint32_t count = here.width * here.parents;
  std::vector<uint32_t> cables(count);
  for (uint32_t i = 0; i < count; ++i) cables[i] = here.first_link + 2 * (block * count + i) + down;
  return cables;
}

}  // namespace rehearse
