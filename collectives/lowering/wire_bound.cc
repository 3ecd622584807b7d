#include "collectives/lowering/wire_bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "topology/cluster/max_flow.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// Machines of which equal places can be told to have equal cuts: by the figures of all their links.
class AlikeMachines {
 public:
  explicit AlikeMachines(const Cluster& cluster) : cluster_(cluster) {}

  // A number for each kind of machine; for clusters without a structure each is its own.
  uint32_t KindOf(uint32_t machine) {
    const ClusterStructure* structure = cluster_.structure().get();
    if (structure == nullptr) return machine;
    if (structure->link_now.empty() && cluster_.figures().links->HasEqualMachines()) return 0;
    std::vector<double> figures;
    for (uint32_t i = 0; i < structure->links_per_machine(); ++i) {
      const uint32_t link = structure->LinkNow(structure->FirstLinkOf(machine) + i);
      figures.push_back(link == ClusterStructure::kGone ? 0
                                                        : cluster_.Link(link).Capacity().value());
    }
    return kinds_.emplace(std::move(figures), static_cast<uint32_t>(kinds_.size())).first->second;
  }

 private:
  const Cluster& cluster_;
  std::map<std::vector<double>, uint32_t> kinds_;
};

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

WireBounds::WireBounds(const Cluster& cluster, const std::vector<uint32_t>& ranks) : ranks_(ranks) {
  CHECK_GE(ranks.size(), 2u);
  std::sort(ranks_.begin(), ranks_.end());
  std::map<uint32_t, std::vector<uint32_t>> machines;  // members of each
  for (const uint32_t rank : ranks_) machines[cluster.NodeIndexOf(rank)].push_back(rank);
  AlikeMachines alike(cluster);
  const ClusterStructure* structure = cluster.structure().get();
  const auto place_of = [&](uint32_t rank) {
    return structure == nullptr ? rank : rank % structure->devices_per_machine;
  };
  std::set<std::tuple<uint32_t, std::vector<uint32_t>>> met;
  for (const auto& [machine, members] : machines) {
    std::vector<uint32_t> places;
    for (const uint32_t rank : members) places.push_back(place_of(rank));
    if (!met.emplace(alike.KindOf(machine), std::move(places)).second) continue;
    for (const uint32_t rank : members) AddCut(cluster, cluster.DeviceName(rank), {rank});
    if (machines.size() > 1 && members.size() > 1)
      AddCut(cluster, cluster.NodeOf(members.front()), members);
  }
  std::vector<uint32_t> half;
  if (machines.size() > 1) {
    size_t left = machines.size() / 2;
    for (const auto& [machine, members] : machines) {
      if (left-- == 0) break;
      half.insert(half.end(), members.begin(), members.end());
    }
    if (machines.size() > 3) AddCut(cluster, "half of the nodes", std::move(half));
  } else if (ranks_.size() > 3) {
    half.assign(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(ranks_.size() / 2));
    AddCut(cluster, "half of the devices", std::move(half));
  }
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

WireBound WireBounds::Of(CollectiveKind kind, Bytes bytes, uint32_t root) const {
  WireBound bound;
  for (const Cut& cut : cuts_) {
    const bool has_root = std::binary_search(cut.members.begin(), cut.members.end(), root);
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
  return bound;
}

}  // namespace rehearse
