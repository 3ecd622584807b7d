// Bidirectional Dijkstra. Forward labels F(v) are costs from the source, backward labels B(v) costs to
// the target; D is the cheapest F(v) + B(v) met so far. The search may stop as soon as
// top(F) + top(B) >= D, whichever side was expanded in between. We expand the side that has scanned fewer
// links so far, its next vertex included, and so meet at a core switch from both sides without scanning its
// thousands of links. Every link costs something (one link, at least), which makes labels exact:
//   (1) F(v) is exact if the true cost is at most top(F), expanded or not, since the vertex before v on a
//       cheapest path is strictly cheaper and so has been expanded. Likewise B.
//   (2) every vertex of every cheapest path has an exact label on one side at least, since the two true
//       costs add up to D <= top(F) + top(B).
// The path is then read from the source, always taking the smallest next vertex that is on a cheapest path.
#include "topology/router.h"

#include <algorithm>
#include <functional>

#include "topology/nic_owners.h"
#include "topology/path_cost.h"

namespace rehearse {
namespace {

using VertexId = Cluster::VertexId;
using EdgeId = Cluster::EdgeId;

// One vertex as one side of the search sees it; void when it is of an earlier round.
struct Label {
  uint32_t round = 0;
  bool expanded = false;
  bool on_cheapest_path = false;  // known for expanded vertices of the forward side
  PathCost cost;
  std::pair<VertexId, uint32_t>
      next;  // backward side: vertex and link that follow on the way to the target
};

struct Side {
  using Entry = std::pair<PathCost, VertexId>;

  std::vector<Label> labels;
  std::vector<Entry> open;         // a heap, cheapest first; may hold outdated entries
  std::vector<VertexId> expanded;  // in this order
  size_t links_scanned = 0;
};

}  // namespace

class Router::Search {
 public:
  explicit Search(const Cluster& cluster)
      : cluster_(cluster), graph_(cluster.graph()), owned_nics_(NicOwners(cluster)) {
    forward_.labels.resize(boost::num_vertices(graph_));
    backward_.labels.resize(boost::num_vertices(graph_));
  }

  // The links of the route, source first.
  std::vector<uint32_t> Run(uint32_t from_rank, uint32_t to_rank) {
    ++round_;
    source_ = cluster_.devices()[from_rank];
    target_ = cluster_.devices()[to_rank];
    source_nic_ = owned_nics_[from_rank];
    target_nic_ = owned_nics_[to_rank];
    best_ = PathCost::Infinite();
    Start(forward_, source_);
    Start(backward_, target_);
    Meet();
    CHECK(best_ < PathCost::Infinite());  // Cluster::Finish() saw to it
    MarkCheapestPaths();
    links_scanned_ += forward_.links_scanned + backward_.links_scanned;
    return ReadPath();
  }

  size_t links_scanned() const { return links_scanned_; }

 private:
  // Of the step over a link. A NIC counts where it is entered.
  PathCost CostOf(EdgeId edge) const {
    const VertexId to = boost::target(edge, graph_);
    const bool is_foreign_nic =
        graph_[to].kind == VertexKind::kNic && to != source_nic_ && to != target_nic_;
    return {ToTime(graph_[edge].latency), 1, is_foreign_nic ? 1u : 0u};
  }

  PathCost CostAt(const Side& side, VertexId vertex) const {
    const Label& label = side.labels[vertex];
    return label.round == round_ ? label.cost : PathCost::Infinite();
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

  // `vertex`, just expanded, is one link away from `other`.
  void Offer(Side& side, VertexId vertex, VertexId other, EdgeId edge) {
    if (graph_[other].kind == VertexKind::kDevice && other != source_ && other != target_) return;
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

  // The next vertex and link of the route. A vertex that the forward side has not expanded costs at least
  // top(F), and the rest of its path therefore at most top(B): its backward label has seen every way on.
  std::pair<VertexId, uint32_t> Next(VertexId vertex) const {
    if (!IsExpanded(forward_, vertex)) return backward_.labels[vertex].next;
    std::pair<VertexId, uint32_t> next(Cluster::Graph::null_vertex(), 0);
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
  const Cluster::Graph& graph_;
  const std::vector<VertexId> owned_nics_;

  size_t links_scanned_ = 0;
  uint32_t round_ = 0;
  VertexId source_ = 0;
  VertexId target_ = 0;
  VertexId source_nic_ = 0;
  VertexId target_nic_ = 0;
  PathCost best_;
  Side forward_;
  Side backward_;
};

Router::Router(const Cluster& cluster)
    : cluster_(cluster), search_(std::make_unique<Search>(cluster)) {}

Router::~Router() = default;

size_t Router::links_scanned() const { return search_->links_scanned(); }

const Route& Router::Between(uint32_t from_rank, uint32_t to_rank) {
  CHECK_NE(from_rank, to_rank);
  CHECK_LT(from_rank, cluster_.device_count());
  CHECK_LT(to_rank, cluster_.device_count());
  const auto [entry, is_new] = routes_.try_emplace({from_rank, to_rank});
  Route& route = entry->second;
  if (!is_new) return route;
  route.links = search_->Run(from_rank, to_rank);
  route.bandwidth = cluster_.Link(route.links.front()).Capacity();
  for (const uint32_t index : route.links) {
    const ClusterLink& link = cluster_.Link(index);
    route.latency += link.latency;
    route.bandwidth = std::min(route.bandwidth, link.Capacity());
  }
  route.crosses_nodes = cluster_.NodeIndexOf(from_rank) != cluster_.NodeIndexOf(to_rank);
  return route;
}

}  // namespace rehearse
