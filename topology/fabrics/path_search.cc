// Bidirectional Dijkstra. Forward labels F(v) are costs from the source, backward labels B(v)
// costs to the target; D is the cheapest F(v) + B(v) met so far. The search may stop as soon as
// top(F) + top(B) >= D, whichever side was expanded in between. We expand the side that has
// scanned fewer links so far, its next vertex included, and so meet at a core switch from both
// sides without scanning its thousands of links. Every link costs something (one link, at least),
// which makes labels exact:
//   (1) F(v) is exact if the true cost is at most top(F), expanded or not, since the vertex before
//       v on a cheapest path is strictly cheaper and so has been expanded. Likewise B.
//   (2) every vertex of every cheapest path has an exact label on one side at least, since the two
//       true costs add up to D <= top(F) + top(B).
// The path is then read from the source, always taking the smallest next vertex that is on a
// cheapest path.
#include "topology/fabrics/path_search.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "topology/cluster/graph.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/path_class.h"
#include "topology/fabrics/path_cost.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// What a path may use.
struct PathLimits {
  PathClass worst = PathClass::kNetwork;
  int least_width = 0;  // as of WidthOf()
  bool only_network = false;
  bool through_devices = false;
};

// The power of two below a bandwidth.
int WidthOf(BytesPerSecond bandwidth) {
  return std::bit_width(static_cast<uint64_t>(std::max(bandwidth.value(), 1.0)));
}

// A vertex as one side of the search sees it; void if it is from an earlier round.
struct Label {
  uint32_t round = 0;
  bool expanded = false;
  bool on_cheapest_path = false;  // known for expanded vertices of the forward side
  PathCost cost;
  // Backward side: vertex and link that follow on the way to the target.
  std::pair<VertexId, uint32_t> next;
};

struct Side {
  using Entry = std::pair<PathCost, VertexId>;

  std::vector<Label> labels;
  std::vector<Entry> open;         // a heap, cheapest first; may hold outdated entries
  std::vector<VertexId> expanded;  // in this order
  size_t links_scanned = 0;
};

}  // namespace

class PathSearch::Meeting {
 public:
  explicit Meeting(const Cluster& cluster)
      : cluster_(cluster), graph_(GraphOf(cluster)), drawn_(*cluster.wiring()->drawn_figures) {}

  // No links if there is no path within the limits.
  std::vector<uint32_t> Find(VertexId source, VertexId target, VertexId source_nic,
                             VertexId target_nic, const std::vector<bool>& without,
                             const PathLimits& limits) {
    if (round_++ == 0) {
      forward_.labels.resize(cluster_.vertex_count());
      backward_.labels.resize(cluster_.vertex_count());
    }
    source_ = source;
    target_ = target;
    source_nic_ = source_nic;
    target_nic_ = target_nic;
    without_ = &without;
    limits_ = limits;
    best_ = PathCost::Infinite();
    Start(forward_, source_);
    Start(backward_, target_);
    Meet();
    links_scanned_ += forward_.links_scanned + backward_.links_scanned;
    if (best_ == PathCost::Infinite()) return {};
    MarkCheapestPaths();
    return ReadPath();
  }

  // Of the widest within the limits.
  std::vector<uint32_t> FindWidest(VertexId source, VertexId target, VertexId source_nic,
                                   VertexId target_nic, const std::vector<bool>& without,
                                   PathLimits limits) {
    std::vector<uint32_t> found;
    while (true) {
      std::vector<uint32_t> links = Find(source, target, source_nic, target_nic, without, limits);
      if (links.empty()) return found;
      found = std::move(links);
      limits.least_width = WidthOfPath(found) + 1;
    }
  }

  // Of its narrowest link.
  int WidthOfPath(const std::vector<uint32_t>& links) const {
    int width = std::numeric_limits<int>::max();
    for (const uint32_t link : links) width = std::min(width, WidthOf(drawn_[link].bandwidth));
    return width;
  }

  size_t TakeLinksScanned() { return std::exchange(links_scanned_, 0); }

 private:
  VertexKind KindOf(VertexId vertex) const { return cluster_.KindOfVertex(vertex); }

  // The cost of the step over a link. A NIC counts where it is entered.
  PathCost CostOf(EdgeId edge) const {
    const VertexId to = boost::target(edge, graph_);
    const bool is_foreign_nic =
        KindOf(to) == VertexKind::kNic && to != source_nic_ && to != target_nic_;
    return {ToTime(FiguresForRoutes(cluster_, graph_[edge].index).latency), 1,
            is_foreign_nic ? 1u : 0u};
  }

  PathCost CostAt(const Side& side, VertexId vertex) const {
    const Label& label = side.labels[vertex];
    return label.round == round_ ? label.cost : PathCost::Infinite();
  }

  // Whether the limits leave the link out.
  bool IsGone(EdgeId edge) const {
    const uint32_t link = graph_[edge].index;
    if (!without_->empty() && (*without_)[link]) return true;
    const LinkKind kind = cluster_.KindOf(link);
    if (limits_.only_network) return kind != LinkKind::kNetwork;
    if (limits_.least_width > 0 && WidthOf(drawn_[link].bandwidth) < limits_.least_width)
      return true;
    return limits_.worst != PathClass::kNetwork &&
           ClassOfStep(kind, KindOf(boost::target(edge, graph_))) > limits_.worst;
  }

  bool IsExpanded(const Side& side, VertexId vertex) const {
    return side.labels[vertex].round == round_ && side.labels[vertex].expanded;
  }

  void Start(Side& side, VertexId vertex) const {
    side.open.clear();
    side.expanded.clear();
    side.links_scanned = 0;
    side.labels[vertex] = {.round = round_, .cost = {}, .next = {}};
    side.open.emplace_back(PathCost(), vertex);
  }

  // The cost of the cheapest vertex that is still to be expanded.
  PathCost Top(Side& side) const {
    while (!side.open.empty()) {
      const auto [cost, vertex] = side.open.front();
      if (!IsExpanded(side, vertex) && cost == CostAt(side, vertex)) return cost;
      std::pop_heap(side.open.begin(), side.open.end(), std::greater<>());
      side.open.pop_back();
    }
    return PathCost::Infinite();
  }

  void Meet() {
    while (Top(forward_) + Top(backward_) < best_) {
      const size_t forward_links = boost::out_degree(forward_.open.front().second, graph_);
      const size_t backward_links = boost::in_degree(backward_.open.front().second, graph_);
      if (forward_.links_scanned + forward_links <= backward_.links_scanned + backward_links) {
        forward_.links_scanned += forward_links;
        const VertexId vertex = TakeTop(forward_);
        for (auto [it, end] = boost::out_edges(vertex, graph_); it != end; ++it)
          Offer(forward_, vertex, boost::target(*it, graph_), *it);
      } else {
        backward_.links_scanned += backward_links;
        const VertexId vertex = TakeTop(backward_);
        for (auto [it, end] = boost::in_edges(vertex, graph_); it != end; ++it)
          Offer(backward_, vertex, boost::source(*it, graph_), *it);
      }
    }
  }

  VertexId TakeTop(Side& side) const {
    const VertexId vertex = side.open.front().second;
    side.labels[vertex].expanded = true;
    side.expanded.push_back(vertex);
    return vertex;
  }

  bool MayPass(VertexKind kind) const {
    if (kind == VertexKind::kDevice) return limits_.through_devices;
    return kind != VertexKind::kNic || !limits_.only_network;
  }

  // `vertex`, just expanded, is one link away from `other`.
  void Offer(Side& side, VertexId vertex, VertexId other, EdgeId edge) {
    const bool is_end = other == source_ || other == target_;
    if (!is_end && !MayPass(KindOf(other))) return;
    if (IsGone(edge)) return;
    const PathCost cost = side.labels[vertex].cost + CostOf(edge);
    const std::pair<VertexId, uint32_t> next(vertex, graph_[edge].index);
    Label& label = side.labels[other];
    if (cost < CostAt(side, other)) {
      label = {.round = round_, .cost = cost, .next = next};
      side.open.emplace_back(cost, other);
      std::push_heap(side.open.begin(), side.open.end(), std::greater<>());
      best_ = std::min(best_, CostAt(forward_, other) + CostAt(backward_, other));
    } else if (cost == label.cost) {
      label.next = std::min(label.next, next);
    }
  }

  // Whether the link, which leaves a vertex of exact forward cost, is part of a cheapest path.
  bool IsOnCheapestPath(EdgeId edge) const {
    if (IsGone(edge)) return false;
    const VertexId to = boost::target(edge, graph_);
    const PathCost cost = CostAt(forward_, boost::source(edge, graph_)) + CostOf(edge);
    if (cost + CostAt(backward_, to) == best_) return true;
    return cost == CostAt(forward_, to) && forward_.labels[to].on_cheapest_path;
  }

  void MarkCheapestPaths() {
    for (auto vertex = forward_.expanded.rbegin(); vertex != forward_.expanded.rend(); ++vertex) {
      const auto [begin, end] = boost::out_edges(*vertex, graph_);
      forward_.labels[*vertex].on_cheapest_path =
          std::any_of(begin, end, [&](EdgeId edge) { return IsOnCheapestPath(edge); });
    }
  }

  // The next vertex and link of the route. A vertex that the forward side has not expanded costs at
  // least top(F), so the rest of its path costs at most top(B): its backward label has seen every
  // way on.
  std::pair<VertexId, uint32_t> Next(VertexId vertex) const {
    if (!IsExpanded(forward_, vertex)) return backward_.labels[vertex].next;
    std::pair<VertexId, uint32_t> next(kNoVertex, 0);
    for (auto [it, end] = boost::out_edges(vertex, graph_); it != end; ++it)
      if (IsOnCheapestPath(*it))
        next = std::min(next, std::pair(boost::target(*it, graph_), graph_[*it].index));
    return next;
  }

  std::vector<uint32_t> ReadPath() const {
    std::vector<uint32_t> links;
    for (VertexId vertex = source_; vertex != target_;) {
      const auto [next, link] = Next(vertex);
      links.push_back(link);
      CHECK_LE(links.size(), size_t{best_.links});
      vertex = next;
    }
    return links;
  }

  const Cluster& cluster_;
  const ClusterGraph& graph_;
  const FigureTable& drawn_;

  size_t links_scanned_ = 0;
  uint32_t round_ = 0;
  VertexId source_ = 0;
  VertexId target_ = 0;
  VertexId source_nic_ = 0;
  VertexId target_nic_ = 0;
  const std::vector<bool>* without_ = nullptr;
  PathLimits limits_;
  PathCost best_;
  Side forward_;
  Side backward_;
};

PathSearch::PathSearch(const Cluster& cluster)
    : cluster_(cluster), meeting_(std::make_unique<Meeting>(cluster)) {}

PathSearch::~PathSearch() = default;

std::vector<uint32_t> PathSearch::BetweenRanks(uint32_t from_rank, uint32_t to_rank,
                                               const std::vector<bool>& without, uint32_t turn) {
  const auto nic_of = [&](uint32_t rank) {
    const std::vector<VertexId>& nics = NicsOf(rank);
    return nics.empty() ? kNoVertex : nics[turn % nics.size()];
  };
  const VertexId source_nic = nic_of(from_rank);
  const VertexId target_nic = nic_of(to_rank);
  return Between(cluster_.devices()[from_rank], cluster_.devices()[to_rank], source_nic, target_nic,
                 without);
}

std::vector<uint32_t> PathSearch::Between(VertexId source, VertexId target, VertexId source_nic,
                                          VertexId target_nic, const std::vector<bool>& without) {
  std::vector<uint32_t> links;
  if (!AreApart(source, target)) links = Inside(source, target, source_nic, target_nic, without);
  if (links.empty()) links = Across(source, target, source_nic, target_nic, without);
  if (links.empty()) links = ThroughDevices(source, target, without);
  if (links.empty()) links = ByProxies(source, target, source_nic, target_nic, without);
  links_scanned_ += meeting_->TakeLinksScanned();
  if (links.empty() && without.empty())
    throw Error(fmt::format("no way from {} to {} except through other devices",
                            cluster_.VertexAt(source).name, cluster_.VertexAt(target).name));
  return links;
}

std::vector<uint32_t> PathSearch::Inside(VertexId source, VertexId target, VertexId source_nic,
                                         VertexId target_nic, const std::vector<bool>& without) {
  std::vector<uint32_t> links;
  for (const PathClass worst : kPathClasses) {
    if (worst == PathClass::kNetwork || !links.empty()) break;
    links = meeting_->FindWidest(source, target, source_nic, target_nic, without, {.worst = worst});
  }
  return links;
}

std::vector<uint32_t> PathSearch::Across(VertexId source, VertexId target, VertexId source_nic,
                                         VertexId target_nic, const std::vector<bool>& without) {
  // From a device to its NIC or the other way round; nothing if there is no such path.
  const auto leg = [&](VertexId from, VertexId to) -> std::vector<uint32_t> {
    if (!without.empty()) return Inside(from, to, source_nic, target_nic, without);
    const auto [known, is_new] = inside_.try_emplace({from, to});
    if (is_new) known->second = Inside(from, to, source_nic, target_nic, without);
    return known->second;
  };
  const VertexId leaves = source_nic == kNoVertex ? source : source_nic;
  const VertexId arrives = target_nic == kNoVertex ? target : target_nic;
  if (leaves != arrives && (leaves != source || arrives != target)) {
    std::vector<uint32_t> links = leaves == source ? std::vector<uint32_t>() : leg(source, leaves);
    const std::vector<uint32_t> between =
        meeting_->Find(leaves, arrives, leaves, arrives, without, {.only_network = true});
    const std::vector<uint32_t> last =
        arrives == target ? std::vector<uint32_t>() : leg(arrives, target);
    const bool is_whole = !between.empty() && links.empty() == (leaves == source) &&
                          last.empty() == (arrives == target);
    if (is_whole) {
      links.insert(links.end(), between.begin(), between.end());
      links.insert(links.end(), last.begin(), last.end());
      return links;
    }
  }
  return meeting_->Find(source, target, source_nic, target_nic, without, {});
}

// Each device on the way copies all that passes it, so the shortest way comes first here.
std::vector<uint32_t> PathSearch::ThroughDevices(VertexId source, VertexId target,
                                                 const std::vector<bool>& without) {
  PathLimits limits = {.worst = PathClass::kNvLink, .through_devices = true};
  std::vector<uint32_t> found =
      meeting_->Find(source, target, kNoVertex, kNoVertex, without, limits);
  while (!found.empty()) {
    limits.least_width = meeting_->WidthOfPath(found) + 1;
    std::vector<uint32_t> wider =
        meeting_->Find(source, target, kNoVertex, kNoVertex, without, limits);
    if (wider.empty() || wider.size() > found.size()) break;
    found = std::move(wider);
  }
  return found;
}

std::vector<uint32_t> PathSearch::ByProxies(VertexId source, VertexId target, VertexId source_nic,
                                            VertexId target_nic, const std::vector<bool>& without) {
  struct Proxy {
    VertexId device = 0;
    VertexId nic = kNoVertex;
    std::vector<uint32_t> way;  // from the source to it, or from it to the target
  };
  SortByNode();
  const auto proxies_of = [&](VertexId end, VertexId nic, bool is_source) {
    std::vector<Proxy> proxies = {{end, nic, {}}};
    const auto rank = std::find(cluster_.devices().begin(), cluster_.devices().end(), end);
    if (rank == cluster_.devices().end()) return proxies;
    const uint32_t node =
        cluster_.NodeIndexOf(static_cast<uint32_t>(rank - cluster_.devices().begin()));
    for (const uint32_t other : ranks_of_node_[node]) {
      const VertexId device = cluster_.devices()[other];
      if (device == end) continue;
      std::vector<uint32_t> way =
          is_source ? ThroughDevices(end, device, without) : ThroughDevices(device, end, without);
      if (way.empty()) continue;
      const std::vector<VertexId>& nics = NicsOf(other);
      proxies.push_back({device, nics.empty() ? kNoVertex : nics.front(), std::move(way)});
    }
    return proxies;
  };
  const std::vector<Proxy> sources = proxies_of(source, source_nic, true);
  const std::vector<Proxy> targets = proxies_of(target, target_nic, false);
  std::vector<uint32_t> best;
  for (const Proxy& from : sources) {
    for (const Proxy& to : targets) {
      const bool is_direct = from.way.empty() && to.way.empty();  // which was tried
      if (is_direct || from.device == to.device) continue;
      std::vector<uint32_t> between;
      if (!AreApart(from.device, to.device))
        between = Inside(from.device, to.device, from.nic, to.nic, without);
      if (between.empty()) between = Across(from.device, to.device, from.nic, to.nic, without);
      const size_t links = from.way.size() + between.size() + to.way.size();
      if (between.empty() || (!best.empty() && links >= best.size())) continue;
      best = from.way;
      best.insert(best.end(), between.begin(), between.end());
      best.insert(best.end(), to.way.begin(), to.way.end());
    }
  }
  return best;
}

bool PathSearch::AreApart(VertexId a, VertexId b) {
  if (island_.empty()) {
    island_.resize(cluster_.vertex_count());
    std::iota(island_.begin(), island_.end(), 0u);
    const auto root_of = [&](size_t vertex) {
      while (island_[vertex] != vertex) {
        island_[vertex] = island_[island_[vertex]];
        vertex = island_[vertex];
      }
      return static_cast<uint32_t>(vertex);
    };
    for (uint32_t link = 0; link < cluster_.link_count(); ++link) {
      if (cluster_.KindOf(link) == LinkKind::kNetwork) continue;
      island_[root_of(cluster_.SourceOf(link))] = root_of(cluster_.TargetOf(link));
    }
    for (size_t vertex = 0; vertex < island_.size(); ++vertex) island_[vertex] = root_of(vertex);
  }
  return island_[a] != island_[b];
}

void PathSearch::SortByNode() {
  if (!ranks_of_node_.empty()) return;
  ranks_of_node_.resize(cluster_.node_count());
  for (uint32_t i = 0; i < cluster_.device_count(); ++i)
    ranks_of_node_[cluster_.NodeIndexOf(i)].push_back(i);
  owned_nics_.resize(cluster_.device_count());
  owners_known_.resize(cluster_.node_count());
}

const std::vector<VertexId>& PathSearch::NicsOf(uint32_t rank) {
  SortByNode();
  const uint32_t node = cluster_.NodeIndexOf(rank);
  if (!owners_known_[node]) {
    owners_known_[node] = true;
    std::vector<VertexId> devices;
    for (const uint32_t i : ranks_of_node_[node]) devices.push_back(cluster_.devices()[i]);
    std::vector<std::vector<VertexId>> nics = NicOwners(cluster_, devices);
    for (size_t i = 0; i < nics.size(); ++i)
      owned_nics_[ranks_of_node_[node][i]] = std::move(nics[i]);
  }
  return owned_nics_[rank];
}

}  // namespace rehearse
