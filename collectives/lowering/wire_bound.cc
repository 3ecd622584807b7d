#include "collectives/lowering/wire_bound.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "topology/cluster/grid.h"
#include "topology/cluster/max_flow.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// What the fabric's blocks of switches pass to the rest, and which machines of a group are in them.
class BlocksOfGroup {
 public:
  // A block of a level: leaves, pods, groups of a dragonfly.
  using Block = std::pair<size_t, uint32_t>;

  BlocksOfGroup(const Cluster& cluster, const std::vector<uint32_t>& machines) : cluster_(cluster) {
    if (!HasFabric()) return;
    SumUp();
    for (const uint32_t machine : machines)
      for (const Block& block : BlocksOf(machine)) machines_in_[block].insert(machine);
  }

  bool HasFabric() const { return FabricOf(cluster_) != nullptr; }

  // Of all ports, with repetitions; those of the first port first.
  std::vector<Block> BlocksOf(uint32_t machine) const {
    std::vector<Block> blocks;
    for (uint32_t port = 0; port < cluster_.structure()->ports(); ++port) {
      const std::vector<uint32_t> chain = ChainOf(SwitchOfPort(*FabricOf(cluster_), machine, port));
      for (size_t level = 0; level < chain.size(); ++level)
        blocks.emplace_back(level, chain[level]);
    }
    return blocks;
  }
  const std::set<uint32_t>& MachinesIn(const Block& block) const { return machines_in_.at(block); }
  // What leaves a block for others, and what enters it.
  std::pair<BytesPerSecond, BytesPerSecond> PassedBy(const Block& block) const {
    const auto known = passed_.find(block);
    return known == passed_.end() ? std::pair<BytesPerSecond, BytesPerSecond>() : known->second;
  }
  const std::map<Block, std::set<uint32_t>>& all() const { return machines_in_; }

 private:
  std::vector<uint32_t> ChainOf(uint32_t at) const {
    std::vector<uint32_t> chain;
    if (!AppendBlocks(*FabricOf(cluster_), at, &chain)) chain.push_back(at);
    return chain;
  }

  void SumUp() {
    const Fabric& fabric = *FabricOf(cluster_);
    if (const auto* clos = std::get_if<Clos>(&fabric.kind)) {
      for (size_t level = 0; level + 1 < clos->levels.size(); ++level)
        for (uint32_t block = 0; block < clos->levels[level].blocks; ++block) {
          const uint32_t up = cluster_.link_count() + clos->levels[level].first_trunk + 2 * block;
          passed_[{level, block}] = {cluster_.Link(up).Capacity(),
                                     cluster_.Link(up + 1).Capacity()};
        }
      return;
    }
    // All other fabrics consist of the switches that machines are cabled to.
    const VertexId first = fabric.first_switch;
    const VertexId end = cluster_.structure()->first_vertex;
    const auto is_switch = [&](VertexId vertex) { return vertex >= first && vertex < end; };
    for (uint32_t link = 0; link < cluster_.link_count(); ++link) {
      const VertexId from = cluster_.SourceOf(link);
      const VertexId to = cluster_.TargetOf(link);
      if (!is_switch(from) || !is_switch(to)) continue;
      const std::vector<uint32_t> here = ChainOf(static_cast<uint32_t>(from - first));
      const std::vector<uint32_t> there = ChainOf(static_cast<uint32_t>(to - first));
      const BytesPerSecond rate = cluster_.Link(link).Capacity();
      for (size_t level = 0; level < here.size(); ++level) {
        if (here[level] == there[level]) continue;
        passed_[{level, here[level]}].first += rate;
        passed_[{level, there[level]}].second += rate;
      }
    }
  }

  const Cluster& cluster_;
  std::map<Block, std::set<uint32_t>> machines_in_;
  std::map<Block, std::pair<BytesPerSecond, BytesPerSecond>> passed_;
};

// Machines of which equal places can be told to have equal cuts: by the figures of all their links,
// and of what leads on from the switches that they are cabled to.
class AlikeMachines {
 public:
  AlikeMachines(const Cluster& cluster, const BlocksOfGroup& blocks)
      : cluster_(cluster), blocks_(blocks) {}

  // A number for each kind of machine; for clusters without a structure each is its own.
  uint32_t KindOf(uint32_t machine) {
    const ClusterStructure* structure = cluster_.structure().get();
    if (structure == nullptr) return machine;
    std::vector<double> figures;
    const bool are_equal =
        structure->link_now.empty() && cluster_.figures().links->HasEqualMachines();
    for (uint32_t i = 0; i < structure->links_per_machine() && !are_equal; ++i) {
      const uint32_t link = structure->LinkNow(structure->FirstLinkOf(machine) + i);
      figures.push_back(link == ClusterStructure::kGone ? 0
                                                        : cluster_.Link(link).Capacity().value());
    }
    if (blocks_.HasFabric()) {
      for (const BlocksOfGroup::Block& block : blocks_.BlocksOf(machine)) {
        const auto [out, in] = blocks_.PassedBy(block);
        const bool has_others = blocks_.MachinesIn(block).size() > 1;
        figures.insert(figures.end(), {out.value(), in.value(), has_others ? 1.0 : 0.0});
      }
    }
    return kinds_.emplace(std::move(figures), static_cast<uint32_t>(kinds_.size())).first->second;
  }

 private:
  const Cluster& cluster_;
  const BlocksOfGroup& blocks_;
  std::map<std::vector<double>, uint32_t> kinds_;
};

// Where the ranks are along each dimension of a torus, a mesh or a HyperX; nothing for other
// clusters.
std::vector<std::vector<uint32_t>> PlacesAlong(const Cluster& cluster,
                                               const std::vector<uint32_t>& ranks) {
  std::vector<std::vector<uint32_t>> places;
  if (const Fabric* fabric = FabricOf(cluster)) {
    const auto add_all = [&](const auto& dimensions) {
      for (const auto& dimension : dimensions) {
        std::vector<uint32_t>& along = places.emplace_back();
        for (const uint32_t rank : ranks)
          along.push_back(SwitchOfPort(*fabric, cluster.NodeIndexOf(rank), 0) / dimension.stride %
                          dimension.size);
      }
    };
    if (const auto* torus = std::get_if<Torus>(&fabric->kind)) add_all(torus->dimensions);
    const auto* groups = std::get_if<Dragonfly>(&fabric->kind);
    if (groups != nullptr && groups->is_hyperx) add_all(groups->local);
    return places;
  }
  const auto add_grid = [&](const Grid& grid, const auto& place_of) {
    for (size_t dimension = 0; dimension < grid.sizes.size(); ++dimension) {
      std::vector<uint32_t>& along = places.emplace_back();
      for (const uint32_t rank : ranks) along.push_back(grid.Coordinate(place_of(rank), dimension));
    }
  };
  if (const std::optional<Grid> grid = FindGrid(cluster)) {
    add_grid(*grid, [](uint32_t rank) { return rank; });
  } else if (const std::optional<GridOfNodes> nodes = FindGridOfNodes(cluster)) {
    add_grid(nodes->grid, [&](uint32_t rank) { return nodes->place_of[cluster.devices()[rank]]; });
  }
  return places;
}

// What must leave a set of s of p members, and what must enter it, as shares of the bytes.
std::pair<double, double> SharesOf(CollectiveKind kind, double s, double p, bool has_root) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return {s / p, (p - s) / p};
    case CollectiveKind::kReduceScatter:
      return {(p - s) / p, s / p};
    case CollectiveKind::kAllReduce:
      return {1, 1};
    case CollectiveKind::kAllToAll:
      return {s * (p - s) / p, s * (p - s) / p};
    case CollectiveKind::kBroadcast:
      return has_root ? std::pair(1.0, 0.0) : std::pair(0.0, 1.0);
    case CollectiveKind::kReduce:
      return has_root ? std::pair(0.0, 1.0) : std::pair(1.0, 0.0);
    case CollectiveKind::kSendReceive:
      return s == 1 ? std::pair(1.0, 1.0) : std::pair(0.0, 0.0);
    default:
      return {0, 0};
  }
}

}  // namespace

Switches SwitchesOf(AlgorithmId algorithm) {
  const bool adds = algorithm == AlgorithmId::kNvls || algorithm == AlgorithmId::kNvlsTree ||
                    algorithm == AlgorithmId::kCollnet;
  return adds ? Switches::kAdd : Switches::kPass;
}

WireBounds::WireBounds(const Cluster& cluster, const std::vector<uint32_t>& ranks)
    : group_(ranks), ranks_(ranks) {
  CHECK_GE(ranks.size(), 2u);
  std::sort(ranks_.begin(), ranks_.end());
  Machines machines;
  for (const uint32_t rank : ranks_) machines[cluster.NodeIndexOf(rank)].push_back(rank);
  std::vector<uint32_t> numbers;
  for (const auto& [machine, members] : machines) numbers.push_back(machine);
  const BlocksOfGroup blocks(cluster, numbers);
  AlikeMachines alike(cluster, blocks);
  const ClusterStructure* structure = cluster.structure().get();
  const auto place_of = [&](uint32_t rank) {
    return structure == nullptr ? rank : rank % structure->devices_per_machine;
  };
  // The first of the cuts of each kind of machine: its devices', then its own.
  std::map<std::tuple<uint32_t, std::vector<uint32_t>>, size_t> met;
  Parts devices{"all devices", 0, {}, {}};
  Parts nodes{"all nodes", 0, {}, {}};
  for (const auto& [machine, members] : machines) {
    std::vector<uint32_t> places;
    for (const uint32_t rank : members) places.push_back(place_of(rank));
    const auto [known, is_new] =
        met.emplace(std::tuple(alike.KindOf(machine), std::move(places)), cuts_.size());
    if (is_new) {
      for (const uint32_t rank : members) AddCut(cluster, cluster.DeviceName(rank), {rank});
      if (machines.size() > 1 && members.size() > 1)
        AddCut(cluster, cluster.NodeOf(members.front()), members);
    }
    for (size_t i = 0; i < members.size(); ++i) devices.Add(cuts_[known->second + i]);
    if (machines.size() > 1)
      nodes.Add(cuts_[known->second + (members.size() > 1 ? members.size() : 0)]);
  }
  parts_.push_back(std::move(devices));
  if (nodes.count > 0) parts_.push_back(std::move(nodes));
  const bool has_machines = machines.size() > 1;
  const std::string halves = has_machines ? "half of the nodes" : "half of the devices";
  if (has_machines) {
    AddBlocks(cluster, blocks.all(), machines,
              [&](const std::pair<size_t, uint32_t>& block) { return blocks.PassedBy(block); });
  }
  if ((has_machines ? machines.size() : ranks_.size()) < 4) return;
  AddHalvesAlong(cluster, halves);
  std::vector<uint32_t> half;
  if (has_machines) {
    size_t left = machines.size() / 2;
    for (const auto& [machine, members] : machines) {
      if (left-- == 0) break;
      half.insert(half.end(), members.begin(), members.end());
    }
  } else {
    half.assign(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(ranks_.size() / 2));
  }
  AddNewCut(cluster, halves, std::move(half));
}

// Of each dimension the first half of the places that have members.
void WireBounds::AddHalvesAlong(const Cluster& cluster, const std::string& name) {
  const std::vector<std::vector<uint32_t>> places = PlacesAlong(cluster, ranks_);
  for (size_t dimension = 0; dimension < places.size(); ++dimension) {
    const std::set<uint32_t> met(places[dimension].begin(), places[dimension].end());
    if (met.size() < 2) continue;
    const uint32_t middle = *std::next(met.begin(), static_cast<std::ptrdiff_t>(met.size() / 2));
    std::vector<uint32_t> half;
    for (size_t i = 0; i < ranks_.size(); ++i)
      if (places[dimension][i] < middle) half.push_back(ranks_[i]);
    AddNewCut(cluster, fmt::format("{}, along dimension {}", name, dimension), std::move(half));
  }
}

// Of each level the block that passes least for each of its machines, outwards and inwards.
template <typename Passed>
void WireBounds::AddBlocks(const Cluster& cluster,
                           const std::map<std::pair<size_t, uint32_t>, std::set<uint32_t>>& blocks,
                           const Machines& machines, const Passed& passed) {
  std::map<std::pair<size_t, bool>, std::pair<double, const std::set<uint32_t>*>> tightest;
  for (const auto& [block, inside] : blocks) {
    if (inside.size() < 2 || inside.size() == machines.size()) continue;
    const auto [out, in] = passed(block);
    for (const bool leaves : {true, false}) {
      const double share = (leaves ? out : in).value() / static_cast<double>(inside.size());
      const auto [known, is_new] = tightest.try_emplace({block.first, leaves}, share, &inside);
      if (!is_new && share < known->second.first) known->second = {share, &inside};
    }
  }
  std::set<std::set<uint32_t>> added;
  for (const auto& [level, found] : tightest) {
    const std::set<uint32_t>& inside = *found.second;
    if (!added.insert(inside).second) continue;
    std::vector<uint32_t> members;
    for (const uint32_t machine : inside)
      members.insert(members.end(), machines.at(machine).begin(), machines.at(machine).end());
    std::string name =
        fmt::format("{} and {} more", cluster.NodeOf(members.front()), inside.size() - 1);
    std::sort(members.begin(), members.end());
    AddCut(cluster, std::move(name), std::move(members));
  }
}

void WireBounds::Parts::Add(const Cut& cut) {
  ++count;
  out += cut.out;
  in += cut.in;
}

// Unless it is there.
void WireBounds::AddNewCut(const Cluster& cluster, std::string name,
                           std::vector<uint32_t> members) {
  std::sort(members.begin(), members.end());
  const bool is_there = std::any_of(cuts_.begin(), cuts_.end(),
                                    [&](const Cut& cut) { return cut.members == members; });
  if (!is_there) AddCut(cluster, std::move(name), std::move(members));
}

void WireBounds::AddCut(const Cluster& cluster, std::string name, std::vector<uint32_t> members) {
  std::vector<uint32_t> links(cluster.link_count());
  std::iota(links.begin(), links.end(), 0u);
  std::vector<VertexId> inside;
  std::vector<VertexId> outside;
  for (const uint32_t rank : ranks_)
    (std::binary_search(members.begin(), members.end(), rank) ? inside : outside)
        .push_back(cluster.devices()[rank]);
  Cut cut;
  cut.name = std::move(name);
  cut.members = std::move(members);
  cut.out = MaxFlow(cluster, links, inside, outside, OtherDevices::kPass);
  cut.in = MaxFlow(cluster, links, outside, inside, OtherDevices::kPass);
  cuts_.push_back(std::move(cut));
}

WireBound WireBounds::Of(CollectiveKind kind, Bytes bytes, uint32_t root, Switches switches) const {
  CHECK_LT(root, group_.size());
  WireBound bound;
  for (const Cut& cut : cuts_) {
    const bool has_root = std::binary_search(cut.members.begin(), cut.members.end(), group_[root]);
    const auto [out, in] = SharesOf(kind, static_cast<double>(cut.members.size()),
                                    static_cast<double>(ranks_.size()), has_root);
    for (const bool leaves : {true, false}) {
      const Bytes crossing = (leaves ? out : in) * bytes;
      const BytesPerSecond carries = leaves ? cut.out : cut.in;
      if (!(crossing > Bytes(0)) || !(carries > BytesPerSecond(0))) continue;
      const Seconds time = crossing / carries;
      if (!(time > bound.time)) continue;
      bound = {time, cut.name, leaves, carries, crossing};
    }
  }
  if (kind != CollectiveKind::kAllReduce || switches == Switches::kAdd) return bound;
  for (const Parts& parts : parts_) {
    const Bytes crossing = 2.0 * (parts.count - 1) * bytes;
    for (const bool leaves : {true, false}) {
      const BytesPerSecond carries = leaves ? parts.out : parts.in;
      if (!(carries > BytesPerSecond(0)) || !(crossing / carries > bound.time)) continue;
      bound = {crossing / carries, parts.name, leaves, carries, crossing};
    }
  }
  return bound;
}

}  // namespace rehearse
