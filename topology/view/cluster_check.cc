#include "topology/view/cluster_check.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "topology/cluster/graph.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/presets/standard_machine.h"

namespace rehearse {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool IsNvLink(LinkKind kind) { return kind == LinkKind::kNvLink || kind == LinkKind::kXgmi; }

// Where the user said something, in whichever form.
class Places {
 public:
  explicit Places(const JsonReader* said) : said_(said) {
    if (said == nullptr || !said->Has("links") || !said->Has("vertices")) return;
    for (const JsonReader& link : said->At("links").Elements()) {
      links_.push_back(link.place());
      if (link.Has("between")) links_.push_back(link.place());
    }
    for (const JsonReader& vertex : said->At("vertices").Elements())
      vertices_.push_back(vertex.place());
  }

  Place OfVertex(VertexId vertex, const std::vector<std::string_view>& keys) const {
    return vertex < vertices_.size() ? vertices_[vertex] : OfKeys(keys);
  }
  Place OfLink(uint32_t link, const std::vector<std::string_view>& keys) const {
    return link < links_.size() ? links_[link] : OfKeys(keys);
  }
  // The first of these that is there, "node/nics" for one inside another; else the whole.
  Place OfKeys(const std::vector<std::string_view>& keys) const {
    if (said_ == nullptr) return {};
    for (const std::string_view key : keys) {
      const size_t slash = key.find('/');
      const std::string first(key.substr(0, slash));
      if (!said_->Has(first)) continue;
      const JsonReader value = said_->At(first);
      if (slash == std::string_view::npos) return value.place();
      const std::string second(key.substr(slash + 1));
      if (value.IsObject() && value.Has(second)) return value.At(second).place();
    }
    return said_->place();
  }

 private:
  const JsonReader* said_;
  std::vector<Place> links_;  // by index
  std::vector<Place> vertices_;
};

class Checker {
 public:
  Checker(const Cluster& cluster, const JsonReader* said)
      : cluster_(cluster), places_(said), router_(cluster) {}

  std::vector<ClusterFinding> Check() {
    std::map<uint32_t, std::vector<uint32_t>> machines;
    for (uint32_t rank = 0; rank < cluster_.device_count(); ++rank)
      machines[cluster_.NodeIndexOf(rank)].push_back(rank);
    for (const auto& [machine, ranks] : machines) {
      CheckNvLinks(ranks);
      CheckNics(ranks);
      if (router_.MachinesAreAlike()) break;
    }
    CheckFabric();
    CheckEqualRoutes();
    CheckDevices();
    return std::move(findings_);
  }

 private:
  // The same of another machine, or of another NIC or device beside it, is not said again.
  void Say(const Place& place, const std::string& node, const std::string& message) {
    std::string alike = message;
    for (size_t at = alike.find(node + "/"); !node.empty() && at != std::string::npos;
         at = alike.find(node + "/", at))
      alike.erase(at, node.size() + 1);
    for (size_t i = 1; i < alike.size();) {
      if (IsDigit(alike[i]) && IsLetter(alike[i - 1]))
        alike.erase(i, 1);
      else
        ++i;
    }
    if (said_.insert(alike).second) findings_.push_back({place, message});
  }

  std::string NameOf(VertexId vertex) const { return cluster_.VertexAt(vertex).name; }
  std::string NodeOf(VertexId vertex) const { return cluster_.VertexAt(vertex).node; }

  template <typename Counts>
  BytesPerSecond Out(VertexId vertex, const Counts& counts) const {
    BytesPerSecond sum;
    for (auto [it, end] = boost::out_edges(vertex, GraphOf(cluster_)); it != end; ++it) {
      const uint32_t link = GraphOf(cluster_)[*it].index;
      if (counts(link)) sum += cluster_.Link(link).bandwidth;
    }
    return sum;
  }
  template <typename Counts>
  BytesPerSecond In(VertexId vertex, const Counts& counts) const {
    BytesPerSecond sum;
    for (auto [it, end] = boost::in_edges(vertex, GraphOf(cluster_)); it != end; ++it) {
      const uint32_t link = GraphOf(cluster_)[*it].index;
      if (counts(link)) sum += cluster_.Link(link).bandwidth;
    }
    return sum;
  }
  BytesPerSecond NvLinksOf(VertexId device) const {
    return Out(device, [&](uint32_t link) { return IsNvLink(cluster_.KindOf(link)); });
  }

  void CheckNvLinks(const std::vector<uint32_t>& ranks) {
    std::vector<uint32_t> joined;
    for (const uint32_t rank : ranks)
      if (NvLinksOf(cluster_.devices()[rank]) > BytesPerSecond(0)) joined.push_back(rank);
    if (joined.empty()) return;
    for (const uint32_t rank : ranks) {
      const VertexId device = cluster_.devices()[rank];
      if (std::find(joined.begin(), joined.end(), rank) != joined.end()) continue;
      Say(places_.OfVertex(device, {"node/lanes", "node/nvlink"}), NodeOf(device),
          fmt::format("{} has no NVLink, though {} of the {} devices of its machine have",
                      NameOf(device), joined.size(), ranks.size()));
    }
    constexpr size_t kMostLooked = 64;  // devices, pair by pair
    if (joined.size() > kMostLooked) joined.resize(kMostLooked);
    size_t pairs = 0;
    size_t leaving = 0;
    const Route* first = nullptr;
    for (const uint32_t a : joined) {
      for (const uint32_t b : joined) {
        if (a == b) continue;
        ++pairs;
        const Route& route = router_.Between(a, b);
        const bool leaves =
            !std::all_of(route.links.begin(), route.links.end(),
                         [&](uint32_t link) { return IsNvLink(cluster_.KindOf(link)); });
        if (!leaves) continue;
        ++leaving;
        if (first == nullptr) first = &route;
      }
    }
    // Where many have none, as in pairs and cube meshes, it is meant.
    if (first == nullptr || 4 * leaving > pairs) return;
    const VertexId from = cluster_.SourceOf(first->links.front());
    const auto out = std::find_if(first->links.begin(), first->links.end(),
                                  [&](uint32_t link) { return !IsNvLink(cluster_.KindOf(link)); });
    Say(places_.OfVertex(from, {"node/lanes", "node/nvlink", "node"}), NodeOf(from),
        fmt::format("the route from {} to {} leaves NVLink by {}, at {}; {} of {} routes between "
                    "devices with NVLinks do",
                    NameOf(from), NameOf(cluster_.TargetOf(first->links.back())),
                    cluster_.LinkName(*out), Print(first->bandwidth), leaving, pairs));
  }

  void CheckNics(const std::vector<uint32_t>& ranks) {
    if (cluster_.node_count() < 2) return;
    const std::string node = cluster_.NodeOf(ranks.front());
    std::vector<VertexId> devices;
    for (const uint32_t rank : ranks) devices.push_back(cluster_.devices()[rank]);
    const std::vector<std::vector<VertexId>> owners = NicOwners(cluster_, devices);
    std::set<VertexId> used;
    for (const std::vector<VertexId>& nics : owners) used.insert(nics.begin(), nics.end());
    const std::vector<VertexId> nics = NicsOf(node, devices);
    for (const VertexId nic : nics) CheckNic(nic, node, used.count(nic) > 0);
    for (size_t i = 0; i < devices.size() && !nics.empty(); ++i) {
      const bool is_cabled = Out(devices[i], [&](uint32_t link) {
                               return cluster_.KindOf(link) == LinkKind::kNetwork;
                             }) > BytesPerSecond(0);
      if (owners[i].empty() && !is_cabled)
        Say(places_.OfVertex(devices[i], {"node/nics", "nics", "node"}), node,
            fmt::format("{} reaches no NIC of its machine, of {}", NameOf(devices[i]),
                        nics.size()));
    }
  }

  std::vector<VertexId> NicsOf(const std::string& node, const std::vector<VertexId>& devices) {
    std::vector<VertexId> nics;
    const ClusterStructure* structure = cluster_.structure().get();
    if (structure != nullptr) {
      const VertexId first = devices.front();  // the machine's first part
      for (VertexId part = first; part < first + structure->vertices_per_machine; ++part)
        if (cluster_.KindOfVertex(part) == VertexKind::kNic) nics.push_back(part);
      return nics;
    }
    if (nics_of_node_.empty()) {
      for (VertexId vertex = 0; vertex < cluster_.vertex_count(); ++vertex)
        if (cluster_.KindOfVertex(vertex) == VertexKind::kNic)
          nics_of_node_[NodeOf(vertex)].push_back(vertex);
    }
    const auto known = nics_of_node_.find(node);
    return known == nics_of_node_.end() ? nics : known->second;
  }

  void CheckNic(VertexId nic, const std::string& node, bool is_used) {
    const auto is_cable = [&](uint32_t link) {
      return cluster_.KindOf(link) == LinkKind::kNetwork;
    };
    const auto is_inner = [&](uint32_t link) { return !is_cable(link); };
    const BytesPerSecond cable = Out(nic, is_cable);
    const BytesPerSecond inner = In(nic, is_inner);
    std::optional<uint32_t> first;
    for (auto [it, end] = boost::out_edges(nic, GraphOf(cluster_)); it != end && !first; ++it)
      if (is_cable(GraphOf(cluster_)[*it].index)) first = GraphOf(cluster_)[*it].index;
    if (!first) {
      Say(places_.OfVertex(nic, {"edits", "node/cable", "fabric"}), node,
          fmt::format("{} has no cable", NameOf(nic)));
      return;
    }
    const Place place = places_.OfLink(*first, {"nic", "node/nic", "node/cable", "node"});
    constexpr double kMuch = 4;
    if (cable > 1.001 * inner) {
      Say(place, node,
          fmt::format("the cable of {} carries {}, but what joins it to its machine only {}",
                      NameOf(nic), Print(cable), Print(inner)));
    } else if (inner > kMuch * cable) {
      Say(place, node,
          fmt::format("the cable of {} carries {}, {:.3g} times less than the {} that join it to "
                      "its machine",
                      NameOf(nic), Print(cable), inner / cable, Print(inner)));
    }
    if (!is_used)
      Say(places_.OfVertex(nic, {"node/nics", "nics", "node"}), node,
          fmt::format("no device uses {}: each has a NIC that is nearer or faster", NameOf(nic)));
  }

  void CheckFabric() {
    const std::string idle = IdleOversubscription(cluster_);
    if (!idle.empty())
      Say(places_.OfKeys({"oversubscription", "fabric/oversubscription", "fabric"}), "", idle);
    const Fabric* fabric = FabricOf(cluster_);
    if (fabric != nullptr && std::holds_alternative<Torus>(fabric->kind)) return;
    size_t narrow = 0;
    std::optional<VertexId> first;
    std::pair<BytesPerSecond, BytesPerSecond> passed;
    for (VertexId vertex = 0; vertex < cluster_.vertex_count(); ++vertex) {
      if (cluster_.KindOfVertex(vertex) != VertexKind::kSwitch || !NodeOf(vertex).empty()) continue;
      const BytesPerSecond below =
          In(vertex, [&](uint32_t link) { return !NodeOf(cluster_.SourceOf(link)).empty(); });
      const BytesPerSecond on =
          Out(vertex, [&](uint32_t link) { return NodeOf(cluster_.TargetOf(link)).empty(); });
      const bool is_narrow =
          below > BytesPerSecond(0) && on > BytesPerSecond(0) && below > 1.001 * on;
      if (!is_narrow) continue;
      ++narrow;
      if (first) continue;
      first = vertex;
      passed = {below, on};
    }
    if (!first) return;
    Say(places_.OfVertex(*first, {"oversubscription", "fabric/oversubscription", "fabric"}), "",
        fmt::format("the fabric cannot be full: machines send {} to {}{}, whose cables to other "
                    "switches pass {}",
                    Print(passed.first), NameOf(*first),
                    narrow > 1 ? fmt::format(" (one of {} such switches)", narrow) : "",
                    Print(passed.second)));
  }

  // A switch that a cable joins to another one, and what routes go by.
  struct Onward {
    VertexId to = 0;
    Seconds latency;
    BytesPerSecond bandwidth;
  };
  // One for each switch, by the quickest cable, in the order of their numbers.
  std::vector<Onward> SwitchesBeside(VertexId vertex) const {
    std::map<VertexId, Onward> beside;
    for (auto [it, end] = boost::out_edges(vertex, GraphOf(cluster_)); it != end; ++it) {
      const uint32_t link = GraphOf(cluster_)[*it].index;
      const VertexId to = cluster_.TargetOf(link);
      if (cluster_.KindOf(link) != LinkKind::kNetwork) continue;
      if (cluster_.KindOfVertex(to) != VertexKind::kSwitch) continue;
      const LinkFigures& figures = FiguresForRoutes(cluster_, link);
      const auto [known, is_new] =
          beside.try_emplace(to, Onward{to, figures.latency, figures.bandwidth});
      if (!is_new && figures.latency < known->second.latency)
        known->second = {to, figures.latency, figures.bandwidth};
    }
    std::vector<Onward> list;
    for (const auto& [to, onward] : beside) list.push_back(onward);
    return list;
  }

  // Of drawn graphs: the first two leaves that are joined over several switches without machines,
  // all as quick and as fast, and by no cable of their own.
  void CheckEqualRoutes() {
    if (FabricOf(cluster_) != nullptr) return;
    std::vector<bool> is_leaf(cluster_.vertex_count());
    for (uint32_t link = 0; link < cluster_.link_count(); ++link)
      if (cluster_.KindOfVertex(cluster_.SourceOf(link)) != VertexKind::kSwitch)
        is_leaf[cluster_.TargetOf(link)] = true;
    for (VertexId leaf = 0; leaf < cluster_.vertex_count(); ++leaf) {
      if (!is_leaf[leaf] || cluster_.KindOfVertex(leaf) != VertexKind::kSwitch) continue;
      std::map<VertexId, std::vector<Onward>> over;  // by the other leaf: the ways to it
      std::set<VertexId> direct;
      for (const Onward& up : SwitchesBeside(leaf)) {
        if (is_leaf[up.to]) {
          direct.insert(up.to);
          continue;
        }
        for (const Onward& down : SwitchesBeside(up.to)) {
          if (!is_leaf[down.to] || down.to == leaf) continue;
          over[down.to].push_back(
              {up.to, up.latency + down.latency, std::min(up.bandwidth, down.bandwidth)});
        }
      }
      for (const auto& [other, ways] : over)
        if (direct.count(other) == 0 && SayIfEqual(leaf, other, ways)) return;
    }
  }

  // Whether it said that routes take one of several equal ways.
  bool SayIfEqual(VertexId leaf, VertexId other, const std::vector<Onward>& ways) {
    const auto taken =
        std::min_element(ways.begin(), ways.end(),
                         [](const Onward& a, const Onward& b) { return a.latency < b.latency; });
    std::vector<std::string> names;
    for (const Onward& way : ways)
      if (way.latency == taken->latency && way.bandwidth == taken->bandwidth)
        names.push_back(NameOf(way.to));
    if (names.size() < 2) return false;
    Say(places_.OfVertex(taken->to, {"links"}), "",
        fmt::format("equal routes lead from {} to {} over {} {} {}, but routes of a drawn graph "
                    "are single paths: all traffic between these takes {}; give the fabric as "
                    "\"fabric\" to have it sprayed, or join the switches to one",
                    NameOf(leaf), NameOf(other), names.front(), names.size() > 2 ? "to" : "and",
                    names.back(), names.front()));
    return true;
  }

  // What the NVLinks of a device carry in all presets that have it.
  static std::map<std::string, std::set<double>> NvLinksOfPresets() {
    std::map<std::string, std::set<double>> known;
    for (const ClusterPreset& preset : ClusterPresets()) {
      double sum = 0;
      for (const NodeShape::Wire& wire : DrawNode(StandardMachine(preset).node).wires)
        if (wire.from == 0 && IsNvLink(wire.link.kind)) sum += wire.link.bandwidth.value();
      if (sum > 0) known[preset.device].insert(sum);
    }
    return known;
  }

  void CheckDevices() {
    const auto known = NvLinksOfPresets();
    std::set<uint32_t> met;
    for (uint32_t rank = 0; rank < cluster_.device_count(); ++rank) {
      if (!met.insert(cluster_.SpecOf(rank)).second) continue;
      const VertexId device = cluster_.devices()[rank];
      const double links = NvLinksOf(device).value();
      const auto own = known.find(cluster_.DeviceOf(rank).name);
      if (own == known.end() || !(links > 0)) continue;
      const auto is_among = [&](const std::set<double>& sums) {
        return std::any_of(sums.begin(), sums.end(),
                           [&](double sum) { return sum > 0.99 * links && sum < 1.01 * links; });
      };
      if (is_among(own->second)) continue;
      std::vector<std::string> others;
      for (const auto& [name, sums] : known)
        if (is_among(sums)) others.push_back(name);
      std::vector<std::string> usual;
      for (const double sum : own->second) usual.push_back(Print(BytesPerSecond(sum)));
      Say(places_.OfVertex(device, {"device", "node/device", "node/nvlink"}), NodeOf(device),
          fmt::format(
              "{} is of kind {}, whose NVLinks carry {}, but here they carry {}{}", NameOf(device),
              own->first, fmt::join(usual, " or "), Print(BytesPerSecond(links)),
              others.empty() ? "" : fmt::format(", as those of {}", fmt::join(others, " and "))));
    }
  }

  const Cluster& cluster_;
  Places places_;
  Router router_;
  std::map<std::string, std::vector<VertexId>> nics_of_node_;
  std::set<std::string> said_;
  std::vector<ClusterFinding> findings_;
};

}  // namespace

std::string IdleOversubscription(const Cluster& cluster) {
  const Fabric* fabric = FabricOf(cluster);
  const auto* clos = fabric == nullptr ? nullptr : std::get_if<Clos>(&fabric->kind);
  if (clos == nullptr || clos->levels.size() > 1 || !(clos->oversubscription > 1)) return "";
  if (cluster.node_count() < 2) return "";
  return fmt::format(
      "the machines fit on one leaf switch{}, so that an oversubscription of {:.4g} changes "
      "nothing",
      clos->trees == 1  ? ""
      : clos->rail_only ? " of each rail"
                        : " of each plane",
      clos->oversubscription);
}

std::vector<ClusterFinding> CheckCluster(const Cluster& cluster, const JsonReader* said) {
  return Checker(cluster, said).Check();
}

}  // namespace rehearse
