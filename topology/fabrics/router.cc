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
#include "topology/fabrics/router.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "topology/cluster/graph.h"
#include "topology/fabrics/flow_hash.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/path_cost.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

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

class Router::Search {
 public:
  explicit Search(const Cluster& cluster)
      : cluster_(cluster), graph_(GraphOf(cluster)), figures_(*cluster.figures().links) {}

  // The links of the route, source first. `without` by link, or empty; no links if nothing leads
  // round these. Takes the NICs whose turn it is among those that the ranks own.
  std::vector<uint32_t> Run(uint32_t from_rank, uint32_t to_rank,
                            const std::vector<bool>& without = {}, uint32_t turn = 0) {
    const auto nic_of = [&](uint32_t rank) {
      const std::vector<VertexId>& nics = NicsOf(rank);
      return nics.empty() ? kNoVertex : nics[turn % nics.size()];
    };
    const VertexId source_nic = nic_of(from_rank);
    const VertexId target_nic = nic_of(to_rank);
    return Run(cluster_.devices()[from_rank], cluster_.devices()[to_rank], source_nic, target_nic,
               without);
  }

  // Between any two vertices, whose nearest NICs are given.
  std::vector<uint32_t> Run(VertexId source, VertexId target, VertexId source_nic,
                            VertexId target_nic, const std::vector<bool>& without = {}) {
    if (round_++ == 0) {
      forward_.labels.resize(cluster_.vertex_count());
      backward_.labels.resize(cluster_.vertex_count());
    }
    source_ = source;
    target_ = target;
    source_nic_ = source_nic;
    target_nic_ = target_nic;
    without_ = &without;
    best_ = PathCost::Infinite();
    Start(forward_, source_);
    Start(backward_, target_);
    Meet();
    if (best_ == PathCost::Infinite()) {
      if (!without.empty()) return {};
      throw Error(fmt::format("no way from {} to {} except through other devices",
                              cluster_.VertexAt(source).name, cluster_.VertexAt(target).name));
    }
    MarkCheapestPaths();
    links_scanned_ += forward_.links_scanned + backward_.links_scanned;
    return ReadPath();
  }

  size_t links_scanned() const { return links_scanned_; }

  // The NICs that the rank owns. Found machine by machine when first asked for.
  const std::vector<VertexId>& NicsOf(uint32_t rank) {
    if (ranks_of_node_.empty()) {
      ranks_of_node_.resize(cluster_.node_count());
      for (uint32_t i = 0; i < cluster_.device_count(); ++i)
        ranks_of_node_[cluster_.NodeIndexOf(i)].push_back(i);
      owned_nics_.resize(cluster_.device_count());
      owners_known_.resize(cluster_.node_count());
    }
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

 private:
  VertexKind KindOf(VertexId vertex) const { return cluster_.KindOfVertex(vertex); }

  // The cost of the step over a link. A NIC counts where it is entered.
  PathCost CostOf(EdgeId edge) const {
    const VertexId to = boost::target(edge, graph_);
    const bool is_foreign_nic =
        KindOf(to) == VertexKind::kNic && to != source_nic_ && to != target_nic_;
    return {ToTime(figures_[graph_[edge].index].latency), 1, is_foreign_nic ? 1u : 0u};
  }

  PathCost CostAt(const Side& side, VertexId vertex) const {
    const Label& label = side.labels[vertex];
    return label.round == round_ ? label.cost : PathCost::Infinite();
  }

  bool IsGone(EdgeId edge) const { return !without_->empty() && (*without_)[graph_[edge].index]; }

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
    if (KindOf(other) == VertexKind::kDevice && other != source_ && other != target_) return;
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
  const FigureTable& figures_;
  std::vector<std::vector<uint32_t>> ranks_of_node_;
  std::vector<bool> owners_known_;                 // by node
  std::vector<std::vector<VertexId>> owned_nics_;  // by rank

  size_t links_scanned_ = 0;
  uint32_t round_ = 0;
  VertexId source_ = 0;
  VertexId target_ = 0;
  VertexId source_nic_ = 0;
  VertexId target_nic_ = 0;
  const std::vector<bool>* without_ = nullptr;
  PathCost best_;
  Side forward_;
  Side backward_;
};

bool IsOverNvLinks(const Cluster& cluster, const Route& route) {
  return std::all_of(route.links.begin(), route.links.end(),
                     [&](uint32_t link) { return cluster.KindOf(link) == LinkKind::kNvLink; });
}

Router::Router(const Cluster& cluster, const FabricRouting& routing, std::vector<bool> failing)
    : cluster_(cluster), routing_(routing), failing_(std::move(failing)) {
  const ClusterStructure* structure = cluster.structure().get();
  CheckRouting(routing, FabricOf(cluster), structure == nullptr);
  if (structure == nullptr) {
    if (cluster.node_count() > 1)
      for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
        parts_ = std::max(parts_, static_cast<uint32_t>(Everywhere().NicsOf(rank).size()));
    return;
  }
  is_regular_.assign(structure->machines, -1);
  exits_.resize(structure->devices_per_machine);
  ways_.resize(size_t{structure->devices_per_machine} * structure->devices_per_machine);
  while (model_ < structure->machines && !IsRegular(model_)) ++model_;
  if (!structure->fabric) return;
  rule_ = routing.Over(structure->fabric->routing);
  parts_ = MostExits();
  if (rule_->choice == RouteChoice::kEcmp && IsHashed()) parts_ *= rule_->queue_pairs;
}

Router::~Router() = default;

uint32_t Router::NumberOf(uint64_t phase) {
  if (!rule_ || rule_->choice != RouteChoice::kFlowlet) return 0;
  const uint32_t number =
      phases_.emplace(phase, static_cast<uint32_t>(loads_.size())).first->second;
  if (number == loads_.size()) loads_.emplace_back(cluster_.structure()->link_count);
  return number;
}

bool Router::IsHashed() const {
  return rule_ && ::rehearse::IsHashed(rule_->choice) &&
         HasChoice(*cluster_.structure()->fabric, rule_->choice);
}

size_t Router::links_scanned() const {
  return (search_ ? search_->links_scanned() : 0) +
         (model_search_ ? model_search_->links_scanned() : 0);
}

bool Router::MachinesAreAlike() const {
  const ClusterStructure* structure = cluster_.structure().get();
  return structure != nullptr && structure->link_now.empty() && failing_.empty() &&
         cluster_.figures().links->HasEqualMachines();
}

Router::Search& Router::Everywhere() {
  if (!search_) search_ = std::make_unique<Search>(cluster_);
  return *search_;
}

// The model machine alone, so that the whole cluster need not be drawn as a graph: its parts in
// order, after a hub that all its ports are joined to. Ways over the hub are no longer than any
// over the fabric.
Router::Search& Router::InModel() {
  if (model_search_) return *model_search_;
  const ClusterStructure& structure = *cluster_.structure();
  const VertexId first = structure.FirstVertexOf(model_);
  ClusterBuilder builder("model");
  for (const DeviceSpec& spec : cluster_.device_specs()) builder.AddDeviceSpec(spec);
  const VertexId hub = builder.AddVertex({"hub", VertexKind::kSwitch, ""});
  uint32_t rank = model_ * structure.devices_per_machine;
  for (uint32_t i = 0; i < structure.vertices_per_machine; ++i) {
    const Vertex part = cluster_.VertexAt(first + i);
    builder.AddVertex(part, part.kind == VertexKind::kDevice ? cluster_.SpecOf(rank++) : 0);
  }
  const auto part_of = [&](VertexId vertex) { return hub + 1 + (vertex - first); };
  for (uint32_t i = 0; i < structure.inner_links; ++i) {
    const uint32_t link = structure.LinkNow(structure.FirstLinkOf(model_) + i);
    builder.AddLink(part_of(cluster_.SourceOf(link)), part_of(cluster_.TargetOf(link)),
                    cluster_.Link(link));
  }
  for (uint32_t port = 0; port < structure.ports(); ++port) {
    ClusterLink cable;
    cable.bandwidth = structure.port_speed[port];
    cable.latency = cluster_.figures().machine_latencies[structure.inner_links + 2 * port];
    for (const uint32_t drawn : {0u, 1u}) {
      const uint32_t link = structure.LinkNow(structure.PortLink(model_, port) + drawn);
      if (link != ClusterStructure::kGone)
        cable.latency = std::min(cable.latency, cluster_.Link(link).latency);
    }
    builder.AddLinks(part_of(first + structure.port_vertex[port]), hub, cable);
  }
  builder.set_structure(nullptr, {}, {}, true);
  model_cluster_ = std::make_unique<Cluster>(builder.Finish());
  model_search_ = std::make_unique<Search>(*model_cluster_);
  return *model_search_;
}

// Whether the machine has all its own links, with the latencies that they were drawn with, so that
// what is shortest in one such machine is shortest in all.
bool Router::IsRegular(uint32_t machine) {
  int8_t& known = is_regular_[machine];
  if (known >= 0) return known != 0;
  const ClusterStructure& structure = *cluster_.structure();
  const std::vector<Seconds>& latencies = cluster_.figures().machine_latencies;
  const uint32_t first = structure.FirstLinkOf(machine);
  known = 1;
  for (uint32_t i = 0; i < structure.inner_links; ++i) {
    const uint32_t link = structure.LinkNow(first + i);
    if (link == ClusterStructure::kGone || cluster_.Link(link).latency != latencies[i]) known = 0;
  }
  return known != 0;
}

// Between two parts of the machine, whose nearest NICs are given as well.
Router::InnerWay Router::Inner(uint32_t from, uint32_t to, uint32_t from_nic, uint32_t to_nic) {
  const ClusterStructure& structure = *cluster_.structure();
  const auto run = [&](Search& search, VertexId first) {
    const auto vertex = [&](uint32_t part) { return part == kNone ? kNoVertex : first + part; };
    return search.Run(vertex(from), vertex(to), vertex(from_nic), vertex(to_nic));
  };
  InnerWay way = {true, true, run(InModel(), 1)};
  const auto leaves = [&](uint32_t link) { return link >= structure.inner_links; };
  if (std::none_of(way.links.begin(), way.links.end(), leaves)) return way;
  // Over a hub it is shorter to leave the machine; see whether it is over the fabric too. The
  // machine is regular: all its links are there, one after the other.
  way.links = run(Everywhere(), structure.FirstVertexOf(model_));
  const uint32_t first = structure.LinkNow(structure.FirstLinkOf(model_));
  for (uint32_t& link : way.links) {
    if (link < first || link >= first + structure.inner_links) way.usable = false;
    link -= first;
  }
  return way;
}

// The first NIC that it owns, counted from the machine's first vertex; kNone if it owns none.
uint32_t Router::NicOfPlace(uint32_t place) {
  const std::vector<VertexId>& nics = InModel().NicsOf(place);
  return nics.empty() ? kNone : static_cast<uint32_t>(nics.front() - 1);
}

// The most ports that the NICs of one device have, or the device itself.
uint32_t Router::MostExits() {
  const ClusterStructure& structure = *cluster_.structure();
  if (model_ == structure.machines || structure.ports() <= 1) return 1;
  std::vector<uint32_t> ports(structure.vertices_per_machine);
  for (const uint32_t vertex : structure.port_vertex) ++ports[vertex];
  uint32_t most = 1;
  for (uint32_t place = 0; place < structure.devices_per_machine; ++place) {
    uint32_t own = ports[place];
    for (const VertexId nic : InModel().NicsOf(place)) own += ports[nic - 1];
    most = std::max(most, own);
  }
  return most;
}

const std::vector<Router::Exit>& Router::ExitsOf(uint32_t place) {
  std::vector<Exit>& known = exits_[place];
  if (!known.empty()) return known;
  const ClusterStructure& structure = *cluster_.structure();
  std::vector<VertexId> leaving =
      InModel().NicsOf(place);  // numbered one higher than in the machine
  const bool has_nics = !leaving.empty();
  if (!has_nics) leaving.push_back(VertexId{place} + 1);
  for (const VertexId vertex : leaving) {
    Exit exit;
    exit.out.known = exit.in.known = true;
    const auto part = static_cast<uint32_t>(vertex - 1);
    if (has_nics) {
      exit.out = Inner(place, part, part, part);
      exit.in = Inner(part, place, part, part);
    }
    for (; exit.port < structure.ports(); ++exit.port)
      if (structure.port_vertex[exit.port] == part) known.push_back(exit);
  }
  CHECK(!known.empty());
  return known;
}

std::optional<Router::Ends> Router::EndsOf(uint32_t from_place, uint32_t to_place, uint32_t part) {
  const Fabric& fabric = *cluster_.structure()->fabric;
  const std::vector<Exit>& exits = ExitsOf(from_place);
  const std::vector<Exit>& entries = ExitsOf(to_place);
  const Exit& exit = exits[part % exits.size()];
  const uint32_t tree = TreeOf(fabric, exit.port);
  uint32_t before = 0;  // exits of this tree before this one
  for (const Exit& other : exits) {
    if (&other == &exit) break;
    if (TreeOf(fabric, other.port) == tree) ++before;
  }
  const auto arrives = [&](const Exit& entry) { return TreeOf(fabric, entry.port) == tree; };
  const auto count = static_cast<uint32_t>(std::count_if(entries.begin(), entries.end(), arrives));
  if (count == 0) return std::nullopt;
  before %= count;
  auto entry = std::find_if(entries.begin(), entries.end(), arrives);
  for (; before > 0; --before) entry = std::find_if(entry + 1, entries.end(), arrives);
  return Ends{&exit, &*entry};
}

Router::InnerWay Router::OntoRailOf(uint32_t place, uint32_t from_place, const Exit& exit) {
  const ClusterStructure& structure = *cluster_.structure();
  InnerWay way = WayWithin(from_place, place);
  const uint32_t first = structure.FirstLinkOf(model_);
  const bool is_over_nvlinks =
      way.usable && std::all_of(way.links.begin(), way.links.end(), [&](uint32_t link) {
        return cluster_.KindOf(structure.LinkNow(first + link)) == LinkKind::kNvLink;
      });
  if (is_over_nvlinks && exit.out.usable) {
    way.links.insert(way.links.end(), exit.out.links.begin(), exit.out.links.end());
    return way;
  }
  const uint32_t nic = structure.port_vertex[exit.port];
  return Inner(from_place, nic, NicOfPlace(from_place), nic);
}

const Router::InnerWay& Router::WayWithin(uint32_t from_place, uint32_t to_place) {
  InnerWay& way = ways_[from_place * cluster_.structure()->devices_per_machine + to_place];
  if (!way.known) way = Inner(from_place, to_place, NicOfPlace(from_place), NicOfPlace(to_place));
  return way;
}

bool Router::IsAmong(const std::vector<bool>& links, uint32_t link) const {
  if (!cluster_.IsTrunk(link)) return links[link];
  const auto cables = cluster_.CablesOf(link);
  return std::all_of(cables.begin(), cables.end(), [&](uint32_t cable) { return links[cable]; });
}

void Router::AppendFabric(uint32_t from_switch, uint32_t to_switch, uint64_t flow, uint32_t phase,
                          std::vector<uint32_t>* links) {
  const ClusterStructure& structure = *cluster_.structure();
  const Fabric& fabric = *structure.fabric;
  const size_t begin = links->size();
  if (IsSprayed(fabric, rule_->choice, from_switch, to_switch)) {
    AppendTrunks(fabric, from_switch, to_switch, links);
    for (size_t i = begin; i < links->size(); ++i) (*links)[i] += cluster_.link_count();
    return;
  }
  AppendPath(fabric, from_switch, to_switch, rule_->choice, flow,
             loads_.empty() ? nullptr : &loads_[phase], links);
  for (size_t i = begin; i < links->size(); ++i) (*links)[i] = structure.LinkNow((*links)[i]);
}

bool Router::AppendByStructure(uint32_t from_rank, uint32_t to_rank,
                               const std::vector<bool>& without, uint32_t phase,
                               uint32_t queue_pair, std::vector<uint32_t>* links) {
  const ClusterStructure& structure = *cluster_.structure();
  const uint32_t from = from_rank / structure.devices_per_machine;
  const uint32_t to = to_rank / structure.devices_per_machine;
  if (!IsRegular(from) || !IsRegular(to)) return false;
  const uint32_t from_place = from_rank % structure.devices_per_machine;
  const uint32_t to_place = to_rank % structure.devices_per_machine;
  const bool all_there = structure.link_now.empty() && without.empty();
  const auto is_gone = [&](uint32_t link) {
    if (link == ClusterStructure::kGone) return true;
    if (cluster_.IsTrunk(link) && cluster_.CablesOf(link).empty()) return true;
    return !without.empty() && IsAmong(without, link);
  };
  const auto begin = static_cast<std::ptrdiff_t>(links->size());
  const auto is_cut = [&] {
    return !all_there && std::any_of(links->begin() + begin, links->end(), is_gone);
  };
  if (from == to) {
    const InnerWay& way = WayWithin(from_place, to_place);
    if (!way.usable) return false;
    for (const uint32_t link : way.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(from) + link));
    if (!is_cut()) return true;
    links->erase(links->begin() + begin, links->end());
    return false;
  }
  const Fabric& fabric = *structure.fabric;
  std::optional<Ends> ends = EndsOf(from_place, to_place, queue_pair);
  // Onto another rail: over NVLink by way of the device that is on it, else through the host.
  InnerWay onto_rail;
  const bool is_on_rail = ends.has_value();
  if (!is_on_rail) {
    ends = EndsOf(to_place, to_place, queue_pair);
    onto_rail = OntoRailOf(to_place, from_place, *ends->exit);
  }
  const Exit& exit = *ends->exit;
  const Exit& entry = *ends->entry;
  const InnerWay& first_way = is_on_rail ? exit.out : onto_rail;
  if (!first_way.usable || !entry.in.usable) return false;
  const uint32_t first_switch = SwitchOfPort(fabric, from, exit.port);
  const uint32_t last_switch = SwitchOfPort(fabric, to, entry.port);
  const int tries = HasChoice(fabric, rule_->choice) ? 16 : 1;
  uint64_t flow = FlowHash(routing_.seed.value_or(0), from_rank, to_rank);
  if (queue_pair > 0) flow = Mix(flow ^ (uint64_t{queue_pair} << 32));
  for (int i = 0; i < tries; ++i) {
    for (const uint32_t link : first_way.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(from) + link));
    links->push_back(structure.LinkNow(structure.PortLink(from, exit.port)));
    AppendFabric(first_switch, last_switch, i == 0 ? flow : Mix(flow + i), phase, links);
    links->push_back(structure.LinkNow(structure.PortLink(to, entry.port) + 1));
    for (const uint32_t link : entry.in.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(to) + link));
    if (!is_cut()) return true;
    links->erase(links->begin() + begin, links->end());
  }
  return false;
}

bool Router::AppendWay(uint32_t from_rank, uint32_t to_rank, std::vector<uint32_t>* links) {
  if (cluster_.structure() == nullptr || parts_ != 1 || !failing_.empty()) return false;
  if (rule_ && rule_->choice == RouteChoice::kFlowlet) return false;
  return AppendByStructure(from_rank, to_rank, {}, 0, 0, links);
}

std::vector<uint32_t> Router::Find(uint32_t from_rank, uint32_t to_rank,
                                   const std::vector<bool>& without, uint32_t phase,
                                   uint32_t queue_pair) {
  std::vector<uint32_t> links;
  if (cluster_.structure() != nullptr &&
      AppendByStructure(from_rank, to_rank, without, phase, queue_pair, &links))
    return links;
  return Everywhere().Run(from_rank, to_rank, without, queue_pair);
}

bool Router::MeetsFailure(const Route& route) const {
  if (failing_.empty()) return false;
  const auto fails = [this](uint32_t link) { return IsAmong(failing_, link); };
  return std::any_of(route.links.begin(), route.links.end(), fails) ||
         std::any_of(route.others.begin(), route.others.end(), [&](const auto& other) {
           return std::any_of(other.begin(), other.end(), fails);
         });
}

uint32_t& Router::SlotOf(uint32_t from_rank, uint32_t to_rank, uint32_t phase) {
  const auto find = [&](uint32_t from, uint32_t to, uint32_t in_phase) -> PairSlot& {
    const size_t mask = pairs_.size() - 1;
    size_t i = (Mix(uint64_t{from} << 32 | to) + in_phase) & mask;
    while (pairs_[i].route != kNone &&
           (pairs_[i].from != from || pairs_[i].to != to || pairs_[i].phase != in_phase))
      i = (i + 1) & mask;
    return pairs_[i];
  };
  if (2 * routes_.size() >= pairs_.size()) {
    std::vector<PairSlot> old(std::max<size_t>(64, 2 * pairs_.size()));
    old.swap(pairs_);
    for (const PairSlot& pair : old)
      if (pair.route != kNone) find(pair.from, pair.to, pair.phase) = pair;
  }
  PairSlot& slot = find(from_rank, to_rank, phase);
  slot.from = from_rank;
  slot.to = to_rank;
  slot.phase = phase;
  return slot.route;
}

BytesPerSecond Router::AloneOn(const Route& route) const {
  std::optional<BytesPerSecond> narrowest;
  const auto look = [&](uint32_t link, double parts) {
    const BytesPerSecond rate = cluster_.Link(link).Capacity() * (parts_ / parts);
    narrowest = std::min(narrowest.value_or(rate), rate);
  };
  if (route.others.empty()) {
    for (const uint32_t link : route.links) look(link, parts_);
    return *narrowest;
  }
  std::map<uint32_t, uint32_t> parts;
  ForEachCrossing(route, parts_,
                  [&](uint32_t link, uint32_t crossing) { parts[link] += crossing; });
  for (const auto& [link, crossing] : parts) look(link, crossing);
  return *narrowest;
}

const Route& Router::Between(uint32_t from_rank, uint32_t to_rank, uint64_t phase) {
  CHECK_NE(from_rank, to_rank);
  CHECK_LT(from_rank, cluster_.device_count());
  CHECK_LT(to_rank, cluster_.device_count());
  const uint32_t number = NumberOf(phase);
  uint32_t& known = SlotOf(from_rank, to_rank, number);
  if (known != kNone) return routes_[known];
  known = static_cast<uint32_t>(routes_.size());
  Route& route = routes_.emplace_back();
  route.links = Find(from_rank, to_rank, {}, number);
  route.crosses_nodes = cluster_.NodeIndexOf(from_rank) != cluster_.NodeIndexOf(to_rank);
  if (route.crosses_nodes)
    for (uint32_t i = 1; i < parts_; ++i)
      route.others.push_back(Find(from_rank, to_rank, {}, number, i));
  for (const uint32_t link : route.links) route.latency += cluster_.Link(link).latency;
  route.bandwidth = AloneOn(route);
  if (MeetsFailure(route)) route.detour = Find(from_rank, to_rank, failing_, number);
  return route;
}

std::optional<uint32_t> Router::RailProxy(uint32_t from_rank, uint32_t to_rank) {
  const Fabric* fabric = FabricOf(cluster_);
  if (fabric == nullptr || !HasRails(*fabric)) return std::nullopt;
  const uint32_t devices = cluster_.structure()->devices_per_machine;
  const uint32_t from = from_rank / devices;
  const uint32_t proxy = from * devices + to_rank % devices;
  if (from == to_rank / devices || proxy == from_rank || !IsRegular(from)) return std::nullopt;
  if (AreOnOneRail(*fabric, ExitsOf(from_rank % devices).front().port,
                   ExitsOf(to_rank % devices).front().port))
    return std::nullopt;
  if (!IsOverNvLinks(cluster_, Between(from_rank, proxy))) return std::nullopt;
  return proxy;
}

const Route& Router::AlongRail(uint32_t from_rank, uint32_t to_rank, uint64_t phase) {
  const std::optional<uint32_t> proxy = RailProxy(from_rank, to_rank);
  if (!proxy) return Between(from_rank, to_rank, phase);
  constexpr uint32_t kByRail = 1u << 31;  // tells such pairs from the others
  CHECK_LT(cluster_.device_count(), kByRail);
  const Route& inside = Between(from_rank, *proxy);
  const Route& across = Between(*proxy, to_rank, phase);
  const uint32_t number = NumberOf(phase);
  uint32_t& known = SlotOf(from_rank | kByRail, to_rank, number);
  if (known != kNone) return routes_[known];
  known = static_cast<uint32_t>(routes_.size());
  Route& route = routes_.emplace_back(across);
  route.links.insert(route.links.begin(), inside.links.begin(), inside.links.end());
  for (std::vector<uint32_t>& other : route.others)
    other.insert(other.begin(), inside.links.begin(), inside.links.end());
  route.latency += inside.latency;
  route.bandwidth = std::min(route.bandwidth, inside.bandwidth);
  route.detour.clear();
  if (MeetsFailure(route)) route.detour = Find(from_rank, to_rank, failing_, number);
  return route;
}

}  // namespace rehearse
