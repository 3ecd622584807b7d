#include "topology/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

namespace rehearse {
namespace {

using VertexId = Cluster::VertexId;

enum class Direction { kForward, kBackward };

// The vertices that are met from `start` along links (or against them) without passing through a
// device other than `start`.
std::vector<bool> Reached(const Cluster::Graph& graph, VertexId start, Direction direction) {
  std::vector<bool> reached(boost::num_vertices(graph), false);
  std::vector<VertexId> open = {start};
  reached[start] = true;
  const auto visit = [&](VertexId vertex) {
    if (reached[vertex]) return;
    reached[vertex] = true;
    if (graph[vertex].kind != VertexKind::kDevice) open.push_back(vertex);
  };
  while (!open.empty()) {
    const VertexId vertex = open.back();
    open.pop_back();
    if (direction == Direction::kForward) {
      for (auto [it, end] = boost::out_edges(vertex, graph); it != end; ++it)
        visit(boost::target(*it, graph));
    } else {
      for (auto [it, end] = boost::in_edges(vertex, graph); it != end; ++it)
        visit(boost::source(*it, graph));
    }
  }
  return reached;
}

bool AllReached(const std::vector<bool>& reached, const std::vector<VertexId>& devices) {
  for (const VertexId device : devices)
    if (!reached[device]) return false;
  return true;
}

// Whether all devices meet at one switch, NIC or socket that touches the first device: true of
// nearly every machine, and linear in its size. If not, every device has to be asked.
bool DevicesMeet(const Cluster::Graph& graph, const std::vector<VertexId>& devices) {
  constexpr int kMostCandidates = 8;
  int candidates = 0;
  for (auto [it, end] = boost::out_edges(devices[0], graph); it != end; ++it) {
    const VertexId middle = boost::target(*it, graph);
    if (graph[middle].kind == VertexKind::kDevice) continue;
    if (++candidates > kMostCandidates) break;
    if (AllReached(Reached(graph, middle, Direction::kForward), devices) &&
        AllReached(Reached(graph, middle, Direction::kBackward), devices))
      return true;
  }
  return false;
}

// The ranks, dealt into sets whose members all reach each other from and to the set's first rank.
std::vector<std::vector<uint32_t>> ConnectedRanks(const Cluster::Graph& graph,
                                                  const std::vector<VertexId>& devices) {
  std::vector<std::vector<uint32_t>> sets;
  std::vector<bool> is_placed(devices.size(), false);
  for (uint32_t first = 0; first < devices.size(); ++first) {
    if (is_placed[first]) continue;
    const std::vector<bool> there = Reached(graph, devices[first], Direction::kForward);
    const std::vector<bool> back = Reached(graph, devices[first], Direction::kBackward);
    sets.emplace_back();
    for (uint32_t rank = first; rank < devices.size(); ++rank) {
      if (is_placed[rank] || !there[devices[rank]] || !back[devices[rank]]) continue;
      is_placed[rank] = true;
      sets.back().push_back(rank);
    }
  }
  return sets;
}

// "rank 3", "ranks 0-2, 7 and 5 more".
std::string RanksText(const std::vector<uint32_t>& ranks) {
  constexpr int kMostRanges = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (size_t begin = 0; begin < ranks.size();) {
    if (ranges++ == kMostRanges) return text + fmt::format(" and {} more", ranks.size() - begin);
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : ", ", ranks[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ranks[end - 1]);
    begin = end;
  }
  return text;
}

// "; cut off from the others: rank 4; ranks 5-7": all sets but the largest.
std::string CutOff(const Cluster::Graph& graph, const std::vector<VertexId>& devices) {
  constexpr size_t kMostSets = 4;
  std::vector<std::vector<uint32_t>> sets = ConnectedRanks(graph, devices);
  const auto largest = std::max_element(
      sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  sets.erase(largest);
  if (sets.empty()) return "";  // each reaches the first, but not all each other
  std::string text = "; cut off from the others: ";
  for (size_t i = 0; i < std::min(sets.size(), kMostSets); ++i)
    text += (i == 0 ? "" : "; ") + RanksText(sets[i]);
  if (sets.size() > kMostSets) text += fmt::format("; and {} more sets", sets.size() - kMostSets);
  return text;
}

// `name` makes the link's name for a message.
template <typename NameOf>
void CheckFigures(const ClusterLink& link, NameOf name) {
  if (!(link.bandwidth.value() > 0) || !std::isfinite(link.bandwidth.value()))
    throw Error(fmt::format("link {} has bandwidth {} B/s, expected more than 0", name(),
                            link.bandwidth.value()));
  if (!(link.efficiency > 0 && link.efficiency <= 1))
    throw Error(fmt::format("link {} has efficiency {}, expected above 0 and at most 1", name(),
                            link.efficiency));
  if (!(link.latency >= Seconds(0) && link.latency <= kLongestLatency))
    throw Error(fmt::format("link {} has latency {} s, expected 0 to {} s", name(),
                            link.latency.value(), kLongestLatency.value()));
}

}  // namespace

const char* Name(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "device";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kPcieSwitch:
      return "pcie-switch";
    case VertexKind::kSocket:
      return "socket";
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kSwitch:
      return "switch";
  }
  CHECK(false);
}

const char* Name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "nvlink";
    case LinkKind::kXgmi:
      return "xgmi";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kSocket:
      return "socket";
    case LinkKind::kNetwork:
      return "network";
    case LinkKind::kMemory:
      return "memory";
  }
  CHECK(false);
}

uint32_t Cluster::AddDeviceSpec(const DeviceSpec& spec) {
  device_specs_.push_back(spec);
  return static_cast<uint32_t>(device_specs_.size() - 1);
}

void Cluster::Reserve(size_t vertices, size_t links) {
  graph_.m_vertices.reserve(vertices);
  vertex_by_name_.reserve(vertices);
  links_.reserve(links);
}

Cluster::VertexId Cluster::AddVertex(const Vertex& vertex) {
  if (vertex.name.empty()) throw Error("a vertex of the cluster has no name");
  if (vertex.kind == VertexKind::kDevice && vertex.device >= device_specs_.size())
    throw Error(fmt::format("vertex \"{}\" is a device of a kind that was not added", vertex.name));
  if (vertex_by_name_.find(std::string_view(vertex.name)) != vertex_by_name_.end())
    throw Error(fmt::format("there are two vertices named \"{}\"", vertex.name));
  const bool is_device = vertex.kind == VertexKind::kDevice;
  const VertexId id = boost::add_vertex(vertex, graph_);
  vertex_by_name_.insert(id);
  if (is_device) devices_.push_back(id);
  return id;
}

void Cluster::AddLink(VertexId from, VertexId to, ClusterLink link) {
  const size_t vertices = boost::num_vertices(graph_);
  if (from >= vertices || to >= vertices)
    throw Error(
        fmt::format("a link joins vertices {} and {}, but there are only {}", from, to, vertices));
  const auto name = [&] { return graph_[from].name + "->" + graph_[to].name; };
  if (from == to) throw Error(fmt::format("link {} leads from a vertex to itself", name()));
  CheckFigures(link, name);
  CHECK_LT(links_.size(), size_t{0xffffffff});
  link.index = link_count();
  links_.push_back(boost::add_edge(from, to, link, graph_).first);
}

void Cluster::ChangeLink(uint32_t index, BytesPerSecond bandwidth, Seconds latency) {
  CHECK_LT(index, link_count());
  ClusterLink& link = graph_[links_[index]];
  link.bandwidth = bandwidth;
  link.latency = latency;
  CheckFigures(link, [&] { return LinkName(index); });
}

void Cluster::ChangeEfficiency(uint32_t index, double efficiency) {
  CHECK_LT(index, link_count());
  ClusterLink& link = graph_[links_[index]];
  link.efficiency = efficiency;
  CheckFigures(link, [&] { return LinkName(index); });
}

void Cluster::ChangeDevice(uint32_t rank, uint32_t spec) {
  CHECK_LT(rank, device_count());
  CHECK_LT(spec, device_specs_.size());
  graph_[devices_[rank]].device = spec;
}

void Cluster::ChangeDeviceSpec(uint32_t spec, const DeviceSpec& changed) {
  CHECK_LT(spec, device_specs_.size());
  device_specs_[spec] = changed;
}

void Cluster::AddLinks(VertexId a, VertexId b, const ClusterLink& link) {
  AddLink(a, b, link);
  AddLink(b, a, link);
}

void Cluster::set_structure(std::shared_ptr<const ClusterStructure> structure, bool is_whole) {
  structure_ = std::move(structure);
  is_whole_ = is_whole;
}

void Cluster::Finish() {
  if (devices_.empty()) throw Error(fmt::format("cluster \"{}\" has no device", name_));

  // What a builder made is connected until links are taken away.
  if (!is_whole_ && !DevicesMeet(graph_, devices_)) {
    for (const VertexId from : devices_) {
      const std::vector<bool> reached = Reached(graph_, from, Direction::kForward);
      for (const VertexId to : devices_) {
        if (!reached[to])
          throw Error(
              fmt::format("device \"{}\" has no path to device \"{}\" (a path may not pass through "
                          "other devices){}",
                          graph_[from].name, graph_[to].name, CutOff(graph_, devices_)));
      }
    }
  }

  std::unordered_map<std::string, uint32_t> index_of_node;
  node_index_.clear();
  for (const VertexId device : devices_) {
    const auto next = static_cast<uint32_t>(index_of_node.size());
    node_index_.push_back(index_of_node.emplace(graph_[device].node, next).first->second);
  }
  node_count_ = static_cast<uint32_t>(index_of_node.size());
}

const DeviceSpec& Cluster::DeviceOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return device_specs_[graph_[devices_[rank]].device];
}

const std::string& Cluster::NodeOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return graph_[devices_[rank]].node;
}

uint32_t Cluster::NodeIndexOf(uint32_t rank) const {
  CHECK_LT(rank, node_index_.size());
  return node_index_[rank];
}

const ClusterLink& Cluster::Link(uint32_t index) const {
  CHECK_LT(index, link_count());
  return graph_[links_[index]];
}

std::string Cluster::LinkName(uint32_t index) const {
  CHECK_LT(index, link_count());
  const EdgeId edge = links_[index];
  return graph_[boost::source(edge, graph_)].name + "->" + graph_[boost::target(edge, graph_)].name;
}

Cluster::VertexId Cluster::FindVertex(const std::string& name) const {
  const auto found = vertex_by_name_.find(std::string_view(name));
  if (found == vertex_by_name_.end()) {
    std::vector<std::string> names;
    for (VertexId id = 0; id < boost::num_vertices(graph_); ++id) names.push_back(graph_[id].name);
    throw Error(fmt::format("there is no vertex \"{}\" in cluster \"{}\"{}", name, name_,
                            DidYouMean(name, names)));
  }
  return *found;
}

}  // namespace rehearse
