#include "topology/fabrics/fabric_clos.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "topology/fabrics/fabric_limit.h"
#include "topology/fabrics/flow_hash.h"

namespace rehearse {
namespace {

uint32_t CeilDivide(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

// The tree of that many levels for these machines; its top may be several blocks when
// it is too small.
Clos Shape(const ClosSpec& spec, uint32_t levels, uint32_t machines, uint32_t ports) {
  Clos clos;
  clos.ports = ports;
  clos.rails = spec.rails;
  const double o = spec.oversubscription;
  const auto up = levels == 1 ? 0u : std::max(1u, static_cast<uint32_t>(spec.radix / (1 + o)));
  const uint32_t down = spec.radix - up;
  clos.machines_down = down;
  clos.ports_down = down;
  const uint64_t all_ports = uint64_t{machines} * ports;
  Clos::Level leaf;
  if (levels == 1) {
    leaf.blocks = CeilDivide(all_ports, down);
    clos.rails = false;  // all of them on one switch
  } else {
    leaf.blocks = clos.rails ? CeilDivide(machines, down) * ports : CeilDivide(all_ports, down);
  }
  leaf.parents = up;
  clos.levels.push_back(leaf);
  for (uint32_t i = 1; i < levels; ++i) {
    const Clos::Level& below = clos.levels.back();
    const bool is_top = i + 1 == levels;
    Clos::Level level;
    level.children = is_top ? spec.radix : spec.radix / 2;
    level.blocks = CeilDivide(below.blocks, level.children);
    // A tree that overflows here is far too large in any case.
    level.width = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{below.width} * below.parents, kMostFabricCables));
    level.parents = is_top ? 0 : spec.radix / 2;
    clos.levels.push_back(level);
  }
  return clos;
}

uint64_t PortsOf(const ClosSpec& spec, uint32_t levels) {
  const Clos clos = Shape(spec, levels, 1, 1);
  uint64_t ports = clos.ports_down;
  for (size_t i = 1; i < clos.levels.size(); ++i) ports *= clos.levels[i].children;
  return ports;
}

// "leaf3", "rail0/leaf3", "pod2/spine5", "core7".
std::string NameOf(const Clos& clos, const ClosSpec& spec, uint32_t level, uint32_t block,
                   uint32_t member) {
  const auto top = static_cast<uint32_t>(clos.levels.size()) - 1;
  if (top == 0) return spec.hub;
  if (level == 0) {
    return clos.rails ? fmt::format("rail{}/leaf{}", block % clos.ports, block / clos.ports)
                      : fmt::format("leaf{}", block);
  }
  if (level == top) return (top == 1 ? "spine" : "core") + std::to_string(member);
  return level == 1 ? fmt::format("pod{}/spine{}", block, member)
                    : fmt::format("level{}/block{}/switch{}", level + 1, block, member);
}

}  // namespace

ClosSpec OneSwitch(const std::string& name) {
  ClosSpec spec;
  spec.radix = 1u << 30;
  spec.levels = 1;
  spec.hub = name;
  return spec;
}

Clos AddClos(ClusterBuilder& cluster, const ClosSpec& spec, uint32_t machines, uint32_t ports,
             VertexId* first_switch) {
  constexpr uint32_t kMostLevels = 6;
  if (spec.radix < 4 || spec.radix % 2 != 0)
    throw Error(fmt::format("a fat tree needs switches with an even radix of at least 4, not {}",
                            spec.radix));
  if (!(spec.oversubscription >= 1 && spec.oversubscription <= spec.radix - 1))
    throw Error(
        fmt::format("oversubscription {} is not between 1 and radix - 1", spec.oversubscription));
  uint32_t levels = spec.levels == 0 ? 1 : spec.levels;
  Clos clos = Shape(spec, levels, machines, ports);
  while (spec.levels == 0 && clos.levels.back().blocks > 1 && levels < kMostLevels)
    clos = Shape(spec, ++levels, machines, ports);
  if (clos.levels.back().blocks > 1)
    throw Error(fmt::format(
        "a fat tree of {} levels of radix {} has {} ports, but {} machines have {}; give it more "
        "levels or a larger radix",
        levels, spec.radix, PortsOf(spec, levels), machines, uint64_t{machines} * ports));

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
  for (uint32_t i = 0; i + 1 < levels; ++i) {
    Clos::Level& level = clos.levels[i];
    const Clos::Level& above = clos.levels[i + 1];
    level.first_link = cluster.link_count();
    VertexId below = first[i];
    for (uint32_t block = 0; block < level.blocks; ++block) {
      const VertexId parents = first[i + 1] + VertexId{block / above.children} * above.width;
      for (uint32_t member = 0; member < level.width; ++member, ++below)
        for (VertexId up = 0; up < level.parents; ++up)
          cluster.AddLinks(below, parents + member + up * level.width, spec.cable);
    }
  }
  return clos;
}

uint32_t LeafOf(const Clos& clos, uint32_t machine, uint32_t port) {
  if (clos.rails) return machine / clos.machines_down * clos.ports + port;
  return static_cast<uint32_t>((uint64_t{machine} * clos.ports + port) / clos.ports_down);
}

void AppendPath(const Clos& clos, uint32_t from, uint32_t to, uint64_t flow,
                std::vector<uint32_t>* links) {
  // Upwards: the flow chooses. A cable's two directions are neighbours, up first.
  uint32_t level = 0;
  uint32_t member = 0;
  uint32_t block = from;
  std::vector<uint32_t> target = {to};  // the block of each level that holds the target
  while (block != target.back()) {
    const Clos::Level& here = clos.levels[level];
    const auto up = static_cast<uint32_t>(Mix(flow + level) % here.parents);
    links->push_back(here.first_link + 2 * ((block * here.width + member) * here.parents + up));
    member += here.width * up;
    ++level;
    block /= clos.levels[level].children;
    target.push_back(target.back() / clos.levels[level].children);
  }
  while (level > 0) {
    --level;
    const Clos::Level& here = clos.levels[level];
    const uint32_t up = member / here.width;
    member %= here.width;
    links->push_back(here.first_link +
                     2 * ((target[level] * here.width + member) * here.parents + up) + 1);
  }
}

}  // namespace rehearse
