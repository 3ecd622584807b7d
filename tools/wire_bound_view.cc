#include "tools/wire_bound_view.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collectives/lowering/wire_bound.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr Bytes kSize(1024.0 * 1024 * 1024);

struct Bounded {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Switches switches = Switches::kPass;
  WireBound bound;
};
struct BoundedGroup {
  std::string name;
  uint32_t ranks = 0;
  std::vector<Bounded> bounds;
};

// The devices of the first machine, of the first two, of all.
std::vector<BoundedGroup> BoundsOf(const Cluster& cluster) {
  if (cluster.device_count() > kMostForBound)
    throw Error(fmt::format("--bound: {} devices are too many, expected at most {}",
                            cluster.device_count(), kMostForBound));
  std::vector<BoundedGroup> groups;
  for (const uint32_t nodes : {1u, 2u, cluster.node_count()}) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
      if (cluster.NodeIndexOf(rank) < nodes) ranks.push_back(rank);
    const auto count = static_cast<uint32_t>(ranks.size());
    if (count < 2 || (!groups.empty() && groups.back().ranks == count)) continue;
    BoundedGroup& group = groups.emplace_back();
    group.name = nodes == 1 ? "a node" : fmt::format("{} nodes", nodes);
    group.ranks = count;
    const WireBounds bounds(cluster, ranks);
    const auto add = [&](CollectiveKind kind, Switches switches) {
      group.bounds.push_back({kind, switches, bounds.Of(kind, kSize, 0, switches)});
    };
    add(CollectiveKind::kAllReduce, Switches::kPass);
    add(CollectiveKind::kAllReduce, Switches::kAdd);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce})
      add(kind, Switches::kPass);
  }
  return groups;
}

}  // namespace

DataTable WireBoundTable(const Cluster& cluster) {
  DataTable table({{"cluster", CellKind::kText},
                   {"ranks", CellKind::kInteger},
                   {"kind", CellKind::kText},
                   {"switches_add", CellKind::kTruth},
                   {"bytes", CellKind::kInteger},
                   {"least_seconds", CellKind::kNumber},
                   {"cut", CellKind::kText},
                   {"leaves", CellKind::kTruth},
                   {"cut_bytes", CellKind::kNumber},
                   {"cut_bytes_per_second", CellKind::kNumber}});
  for (const BoundedGroup& group : BoundsOf(cluster))
    for (const auto& [kind, switches, bound] : group.bounds)
      table.Add({cluster.name(), group.ranks, Name(kind), switches == Switches::kAdd,
                 static_cast<uint64_t>(kSize.value()), bound.time.value(), bound.cut, bound.leaves,
                 bound.bytes.value(), bound.carries.value()});
  return table;
}

std::string WireBoundText(const Cluster& cluster) {
  std::string text = fmt::format("{}   the least that the wires allow for {}\n",
                                 VisibleText(cluster.name()), Print(kSize));
  for (const BoundedGroup& group : BoundsOf(cluster)) {
    text += fmt::format("\n{}, {} ranks\n", group.name, group.ranks);
    for (const auto& [kind, switches, bound] : group.bounds)
      text += fmt::format("  {:<15} {:>10}   {} {} {}, which carries {}{}\n", Name(kind),
                          Print(bound.time), Print(bound.bytes), bound.leaves ? "leave" : "enter",
                          VisibleText(bound.cut), Print(bound.carries),
                          switches == Switches::kAdd ? ", if switches add" : "");
  }
  return text;
}

}  // namespace rehearse
