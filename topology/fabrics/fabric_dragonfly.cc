#include "topology/fabrics/fabric_dragonfly.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/fabric_limit.h"
#include "topology/fabrics/flow_hash.h"

namespace rehearse {
namespace {

uint32_t CeilDivide(uint32_t a, uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// The number of the pair (a, b), a < b, among all pairs of n: (0,1), (0,2), …, (1,2), …
uint32_t PairIndex(uint32_t a, uint32_t b, uint32_t n) {
  return a * (2 * n - a - 1) / 2 + (b - a - 1);
}

// Where bundle j to group `other` ends in `group`.
uint32_t Gateway(const Dragonfly& dragonfly, uint32_t group, uint32_t other, uint32_t j) {
  const uint64_t place = other < group ? other : other - 1;
  return static_cast<uint32_t>((place * dragonfly.bundles + j) % dragonfly.switches_per_group);
}

// Corrects one dimension after the other, the first one first.
void AppendLocal(const Dragonfly& dragonfly, uint32_t group, uint32_t from, uint32_t to,
                 std::vector<uint32_t>* links) {
  const uint32_t base = dragonfly.first_local_link + group * dragonfly.local_links_per_group;
  for (const Dragonfly::Dimension& dimension : dragonfly.local) {
    const uint32_t a = from / dimension.stride % dimension.size;
    const uint32_t b = to / dimension.stride % dimension.size;
    if (a == b) continue;
    // The lines along a dimension are numbered by the other coordinates.
    const uint32_t line =
        from / (dimension.stride * dimension.size) * dimension.stride + from % dimension.stride;
    const uint32_t pairs = dimension.size * (dimension.size - 1) / 2;
    const uint32_t pair = line * pairs + PairIndex(std::min(a, b), std::max(a, b), dimension.size);
    links->push_back(base + dimension.first_link + 2 * pair + (a < b ? 0 : 1));
    from += (b - a) * dimension.stride;  // unsigned, wraps as it should
  }
}

// From switch `from` of group g to group h; returns the switch where it arrives.
uint32_t AppendGlobal(const Dragonfly& dragonfly, uint32_t g, uint32_t h, uint32_t from,
                      std::vector<uint32_t>* links) {
  const uint32_t j = from % dragonfly.bundles;
  AppendLocal(dragonfly, g, from, Gateway(dragonfly, g, h, j), links);
  const uint32_t pair = PairIndex(std::min(g, h), std::max(g, h), dragonfly.groups);
  links->push_back(dragonfly.first_global_link + 2 * (pair * dragonfly.bundles + j) +
                   (g < h ? 0 : 1));
  return Gateway(dragonfly, h, g, j);
}

}  // namespace

Dragonfly AddDragonfly(ClusterBuilder& cluster, const DragonflySpec& spec, uint32_t machines,
                       uint32_t ports, VertexId* first_switch) {
  Dragonfly dragonfly;
  dragonfly.ports = ports;
  dragonfly.machines_per_switch = spec.machines_per_switch;
  std::vector<uint32_t> sizes;
  uint32_t switches = 1;
  for (const DragonflySpec::Dimension& dimension : spec.local) {
    sizes.push_back(dimension.size);
    switches *= dimension.size;
  }
  if (switches % ports != 0)
    throw Error(
        fmt::format("a {} of {} switches cannot take machines with {} ports on as many switches",
                    spec.is_hyperx ? "HyperX" : "dragonfly group", switches, ports));
  dragonfly.machines_per_group = switches / ports * spec.machines_per_switch;
  dragonfly.groups = CeilDivide(machines, dragonfly.machines_per_group);
  dragonfly.is_hyperx = spec.is_hyperx;
  if (spec.is_hyperx && dragonfly.groups > 1)
    throw Error(fmt::format("the HyperX has {} places, but there are {} machines",
                            dragonfly.machines_per_group, machines));
  if (dragonfly.groups == 1 && !spec.is_hyperx) {  // only the switches that are used
    uint32_t used = CeilDivide(machines, spec.machines_per_switch) * ports;
    for (uint32_t& size : sizes) {
      const uint32_t wanted = std::min(size, used);
      used = CeilDivide(used, size);
      size = wanted;
    }
  }

  uint32_t stride = 1;
  for (const uint32_t size : sizes) {
    dragonfly.local.push_back({size, stride, 0});
    stride *= size;
  }
  dragonfly.switches_per_group = stride;

  // As many bundles as there are whole cables between two groups, but at most one per switch.
  double cables = 0;
  if (dragonfly.groups > 1) {
    cables = static_cast<double>(spec.global_cables) / (dragonfly.groups - 1);
    dragonfly.bundles = std::clamp(static_cast<uint32_t>(cables), 1u, stride);
  }
  double drawn = 0.5 * dragonfly.groups * dragonfly.groups * dragonfly.bundles;
  for (const uint32_t size : sizes) drawn += 0.5 * dragonfly.groups * stride * size;
  CheckFabricSize(drawn);

  *first_switch = cluster.vertex_count();
  for (uint32_t group = 0; group < dragonfly.groups; ++group)
    for (uint32_t i = 0; i < stride; ++i)
      cluster.AddVertex(
          {spec.is_hyperx ? fmt::format("switch{}", i) : fmt::format("group{}/switch{}", group, i),
           VertexKind::kSwitch, ""});

  dragonfly.first_local_link = cluster.link_count();
  for (uint32_t group = 0; group < dragonfly.groups; ++group) {
    const VertexId first_of_group = *first_switch + VertexId{group} * stride;
    const uint32_t begin = cluster.link_count();
    for (size_t d = 0; d < dragonfly.local.size(); ++d) {
      Dragonfly::Dimension& dimension = dragonfly.local[d];
      dimension.first_link = cluster.link_count() - begin;
      for (uint32_t first = 0; first < stride; ++first) {
        if (first / dimension.stride % dimension.size != 0) continue;  // a line begins at 0
        const VertexId line = first_of_group + first;
        for (VertexId a = 0; a < dimension.size; ++a)
          for (VertexId b = a + 1; b < dimension.size; ++b)
            cluster.AddLinks(line + a * dimension.stride, line + b * dimension.stride,
                             spec.local[d].link);
      }
    }
    dragonfly.local_links_per_group = cluster.link_count() - begin;
  }

  dragonfly.first_global_link = cluster.link_count();
  if (dragonfly.groups > 1) {
    ClusterLink bundle = spec.global;
    bundle.bandwidth = bundle.bandwidth * (cables / dragonfly.bundles);
    const auto end = [&](uint32_t group, uint32_t other, uint32_t j) {
      return *first_switch + VertexId{group} * stride + Gateway(dragonfly, group, other, j);
    };
    for (uint32_t g = 0; g < dragonfly.groups; ++g)
      for (uint32_t h = g + 1; h < dragonfly.groups; ++h)
        for (uint32_t j = 0; j < dragonfly.bundles; ++j)
          cluster.AddLinks(end(g, h, j), end(h, g, j), bundle);
  }
  return dragonfly;
}

uint32_t SwitchOf(const Dragonfly& dragonfly, uint32_t machine, uint32_t port) {
  const uint32_t group = machine / dragonfly.machines_per_group;
  const uint32_t place = machine % dragonfly.machines_per_group;
  return group * dragonfly.switches_per_group +
         place / dragonfly.machines_per_switch * dragonfly.ports + port;
}

void AppendPath(const Dragonfly& dragonfly, uint32_t from, uint32_t to, bool valiant, uint64_t flow,
                std::vector<uint32_t>* links) {
  uint32_t group = from / dragonfly.switches_per_group;
  const uint32_t last = to / dragonfly.switches_per_group;
  uint32_t place = from % dragonfly.switches_per_group;
  if (valiant && dragonfly.is_hyperx && from != to) {
    const auto middle = static_cast<uint32_t>(Mix(flow) % dragonfly.switches_per_group);
    AppendLocal(dragonfly, 0, place, middle, links);
    place = middle;
  }
  if (valiant && group != last && dragonfly.groups > 2) {
    auto middle = static_cast<uint32_t>(Mix(flow) % (dragonfly.groups - 2));
    for (const uint32_t taken : {std::min(group, last), std::max(group, last)})
      if (middle >= taken) ++middle;
    place = AppendGlobal(dragonfly, group, middle, place, links);
    group = middle;
  }
  if (group != last) place = AppendGlobal(dragonfly, group, last, place, links);
  AppendLocal(dragonfly, last, place, to % dragonfly.switches_per_group, links);
}

bool AreInOneGroup(const Dragonfly& dragonfly, uint32_t from, uint32_t to) {
  return from / dragonfly.switches_per_group == to / dragonfly.switches_per_group;
}

// First the pairs of groups, from the lower to the higher and back; then the switches, out and in.
void AppendTrunks(const Dragonfly& dragonfly, uint32_t from, uint32_t to,
                  std::vector<uint32_t>* trunks) {
  const uint32_t g = from / dragonfly.switches_per_group;
  const uint32_t h = to / dragonfly.switches_per_group;
  const uint32_t pairs = dragonfly.groups * (dragonfly.groups - 1) / 2;
  const bool is_local = dragonfly.switches_per_group > 1;
  if (is_local) trunks->push_back(2 * (pairs + from));
  trunks->push_back(2 * PairIndex(std::min(g, h), std::max(g, h), dragonfly.groups) +
                    (g < h ? 0 : 1));
  if (is_local) trunks->push_back(2 * (pairs + to) + 1);
}

uint32_t WaysRound(const Dragonfly& dragonfly, uint32_t from, uint32_t to) {
  if (from == to) return 0;
  if (!AreInOneGroup(dragonfly, from, to)) return dragonfly.groups - 2;
  uint32_t apart = 0;
  for (const Dragonfly::Dimension& dimension : dragonfly.local)
    if (from / dimension.stride % dimension.size != to / dimension.stride % dimension.size) ++apart;
  return apart <= 2 ? 1 : 0;  // then both have neighbours in common
}

void AppendWayRound(const Dragonfly& dragonfly, uint32_t from, uint32_t to, uint64_t which,
                    std::vector<uint32_t>* trunks) {
  const uint32_t pairs = dragonfly.groups * (dragonfly.groups - 1) / 2;
  const bool is_local = dragonfly.switches_per_group > 1;
  const uint32_t g = from / dragonfly.switches_per_group;
  const uint32_t h = to / dragonfly.switches_per_group;
  if (is_local) trunks->push_back(2 * (pairs + from));
  if (g != h) {
    auto third = static_cast<uint32_t>(which % (dragonfly.groups - 2));
    for (const uint32_t end : {std::min(g, h), std::max(g, h)})
      if (third >= end) ++third;
    for (const auto& [a, b] : {std::pair(g, third), std::pair(third, h)})
      trunks->push_back(2 * PairIndex(std::min(a, b), std::max(a, b), dragonfly.groups) +
                        (a < b ? 0 : 1));
  }
  if (is_local) trunks->push_back(2 * (pairs + to) + 1);
}

void AppendBlocks(const Dragonfly& dragonfly, uint32_t from, std::vector<uint32_t>* blocks) {
  const uint32_t group = from / dragonfly.switches_per_group;
  blocks->push_back(from);
  for (const Dragonfly::Dimension& dimension : dragonfly.local)
    blocks->push_back(group * dimension.size + from / dimension.stride % dimension.size);
  blocks->push_back(group);
}

uint32_t TrunkCount(const Dragonfly& dragonfly) {
  const uint32_t between = dragonfly.groups * (dragonfly.groups - 1);
  if (dragonfly.switches_per_group == 1) return between;  // none has others in its group
  return between + 2 * dragonfly.groups * dragonfly.switches_per_group;
}

std::vector<uint32_t> CablesOfTrunk(const Dragonfly& dragonfly, uint32_t trunk) {
  const uint32_t pairs = dragonfly.groups * (dragonfly.groups - 1) / 2;
  std::vector<uint32_t> cables;
  if (trunk < 2 * pairs) {
    for (uint32_t j = 0; j < dragonfly.bundles; ++j)
      cables.push_back(dragonfly.first_global_link + 2 * (trunk / 2 * dragonfly.bundles + j) +
                       trunk % 2);
    return cables;
  }
  const uint32_t place = trunk / 2 - pairs;
  const uint32_t group = place / dragonfly.switches_per_group;
  const uint32_t own = place % dragonfly.switches_per_group;
  for (const Dragonfly::Dimension& dimension : dragonfly.local) {
    const uint32_t first = own - own / dimension.stride % dimension.size * dimension.stride;
    for (uint32_t i = 0; i < dimension.size; ++i) {
      const uint32_t other = first + i * dimension.stride;
      if (other == own) continue;
      AppendLocal(dragonfly, group, trunk % 2 == 0 ? own : other, trunk % 2 == 0 ? other : own,
                  &cables);
    }
  }
  return cables;
}

std::pair<uint32_t, uint32_t> HubsOfTrunk(const Dragonfly& dragonfly, uint32_t trunk) {
  const uint32_t pairs = dragonfly.groups * (dragonfly.groups - 1) / 2;
  const uint32_t size = dragonfly.switches_per_group;
  std::pair<uint32_t, uint32_t> hubs;
  if (trunk < 2 * pairs) {
    uint32_t g = 0;
    uint32_t left = trunk / 2;  // pairs from (g, g + 1) on
    while (left >= dragonfly.groups - 1 - g) left -= dragonfly.groups - 1 - g++;
    hubs = {g * size, (g + 1 + left) * size};
  } else {
    const uint32_t own = trunk / 2 - pairs;
    hubs = {own, own / size * size};
  }
  if (trunk % 2 == 1) std::swap(hubs.first, hubs.second);
  return hubs;
}

}  // namespace rehearse
