#include "tools/foreign/machines/infragraph/infragraph_export.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "tools/foreign/machines/infragraph/infragraph_words.h"
#include "topology/files/cluster_export.h"
#include "topology/files/device_file.h"
#include "topology/files/exact_text.h"

namespace rehearse {
namespace {

using InfraJson = nlohmann::ordered_json;

constexpr size_t kMostInfraExported = 400'000;  // as import/import_infragraph.cc draws

std::string InfraName(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || c == '_' || c == '-';
    if (!is_plain) c = '-';
  }
  return name.empty() ? "unnamed" : name;
}

// "gpu" and 7 of "gpu7".
struct NumberedName {
  std::string stem;
  std::optional<uint32_t> number = {};
};
NumberedName NumberIn(const std::string& name) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  uint32_t number = 0;
  const auto [stop, fault] =
      std::from_chars(name.data() + begin, name.data() + name.size(), number);
  const bool is_canonical = name.size() - begin == 1 || (begin < name.size() && name[begin] != '0');
  if (begin == 0 || fault != std::errc() || !is_canonical) return {name};
  return {name.substr(0, begin), number};
}

// Things of one name that are numbered through, or one of a name of its own.
struct NumberedGroup {
  std::string name;
  std::vector<uint32_t> members;
};
// `alike` tells things that may be in one group apart from others.
std::vector<NumberedGroup> GroupByName(const std::vector<std::string>& names,
                                       const std::vector<std::string>& alike) {
  std::map<std::string, std::vector<uint32_t>> by_stem;
  for (uint32_t i = 0; i < names.size(); ++i)
    if (const NumberedName name = NumberIn(names[i]); name.number) by_stem[name.stem].push_back(i);
  const auto is_through = [&](const std::vector<uint32_t>& members) {
    for (uint32_t i = 0; i < members.size(); ++i) {
      if (NumberIn(names[members[i]]).number != i) return false;
      if (alike[members[i]] != alike[members.front()]) return false;
    }
    return members.size() > 1;
  };
  std::map<uint32_t, NumberedGroup> groups;  // by the first member
  std::set<uint32_t> grouped;
  for (const auto& [stem, members] : by_stem) {
    if (!is_through(members)) continue;
    groups[members.front()] = {stem, members};
    grouped.insert(members.begin(), members.end());
  }
  for (uint32_t i = 0; i < names.size(); ++i)
    if (grouped.count(i) == 0) groups[i] = {names[i], {i}};
  std::set<std::string> used;
  std::vector<NumberedGroup> ordered;
  for (auto& [first, group] : groups) {
    while (!used.insert(group.name).second) group.name += "-";
    ordered.push_back(std::move(group));
  }
  return ordered;
}

const char* ChoiceOf(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "xpu";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kSocket:
      return "cpu";
    case VertexKind::kPcieSwitch:
    case VertexKind::kNvSwitch:
    case VertexKind::kSwitch:
      return "switch";
  }
  CHECK(false);
}

// Links and edges of one device, or of the infrastructure.
class InfraEdges {
 public:
  struct End {
    std::string instance;  // "node[3]"; "" within a device
    std::string component;
    uint32_t index = 0;
  };

  void Add(const End& from, const End& to, const ClusterLink& link, bool is_one_way,
           uint32_t cables) {
    const uint32_t position = PositionOf(link, is_one_way, cables);
    if (!runs_.empty()) {
      Run& run = runs_.back();
      if (run.link == position && Continues(run.to, run.to_end, to) &&
          IsOnly(run.from, run.from_end, from)) {
        ++run.to_end;
        return;
      }
      if (run.link == position && Continues(run.from, run.from_end, from) &&
          IsOnly(run.to, run.to_end, to)) {
        ++run.from_end;
        return;
      }
    }
    runs_.push_back({from, from.index + 1, to, to.index + 1, position});
  }

  void WriteTo(InfraJson* owner) const {
    (*owner)["links"] = links_;
    InfraJson edges = InfraJson::array();
    for (const Run& run : runs_)
      edges.push_back({{"ep1", EndJson(run.from, run.from_end)},
                       {"ep2", EndJson(run.to, run.to_end)},
                       {"scheme", "many2many"},
                       {"link", links_[run.link]["name"]}});
    (*owner)["edges"] = std::move(edges);
  }

 private:
  struct Run {
    End from;
    uint32_t from_end = 0;
    End to;
    uint32_t to_end = 0;
    uint32_t link = 0;
  };

  static bool Continues(const End& begin, uint32_t end, const End& next) {
    return begin.instance == next.instance && begin.component == next.component &&
           next.index == end;
  }
  static bool IsOnly(const End& begin, uint32_t end, const End& other) {
    return begin.instance == other.instance && begin.component == other.component &&
           begin.index == other.index && end == begin.index + 1;
  }
  static InfraJson EndJson(const End& begin, uint32_t end) {
    InfraJson json;
    if (!begin.instance.empty()) json["instance"] = begin.instance;
    json["component"] = end == begin.index + 1
                            ? fmt::format("{}[{}]", begin.component, begin.index)
                            : fmt::format("{}[{}:{}]", begin.component, begin.index, end);
    return json;
  }

  uint32_t PositionOf(const ClusterLink& link, bool is_one_way, uint32_t cables) {
    const auto [known, is_new] =
        positions_.emplace(std::tuple(link.kind, link.bandwidth.value(), link.efficiency,
                                      link.latency.value(), is_one_way, cables),
                           static_cast<uint32_t>(links_.size()));
    if (!is_new) return known->second;
    InfraWords words;
    words.Add("kind", Name(link.kind));
    if (link.efficiency != 1) words.Add("efficiency", fmt::format("{}", link.efficiency));
    if (is_one_way) words.Add("one_way", "yes");
    if (cables > 1) words.Add("cables", fmt::format("{}", cables));
    const uint32_t number = ++of_kind_[link.kind];
    constexpr const char* kRate = "gigabytes_per_second";
    constexpr double kGiga = 1e9;
    constexpr double kMicro = 1e6;
    links_.push_back({{"name", number == 1 ? std::string(Name(link.kind))
                                           : fmt::format("{}-{}", Name(link.kind), number)},
                      {"description", words.Text()},
                      {"physical",
                       {{"bandwidth", {{"choice", kRate}, {kRate, link.bandwidth.value() / kGiga}}},
                        {"latency", {{"choice", "us"}, {"us", link.latency.value() * kMicro}}}}}});
    return known->second;
  }

  InfraJson links_ = InfraJson::array();
  std::map<std::tuple<LinkKind, double, double, double, bool, uint32_t>, uint32_t> positions_;
  std::map<LinkKind, uint32_t> of_kind_;
  std::vector<Run> runs_;
};

// The links of a cluster as edges: there and back together, equal ones beside each other counted.
struct ClusterEdge {
  VertexId from = 0;
  VertexId to = 0;
  ClusterLink link = {};
  bool is_one_way = false;
  uint32_t cables = 1;
};

std::vector<ClusterEdge> EdgesOf(const Cluster& cluster) {
  std::map<std::tuple<VertexId, VertexId, LinkKind, double, double, double, bool>, size_t> known;
  std::vector<ClusterEdge> edges;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    ClusterEdge edge = {cluster.SourceOf(i), cluster.TargetOf(i), cluster.Link(i), true, 1};
    if (i + 1 < cluster.link_count() && AreToAndFro(cluster, i, i + 1)) {
      edge.is_one_way = false;
      ++i;
    }
    VertexId a = edge.from;
    VertexId b = edge.to;
    if (!edge.is_one_way && a > b) std::swap(a, b);
    const auto [same, is_new] =
        known.emplace(std::tuple(a, b, edge.link.kind, edge.link.bandwidth.value(),
                                 edge.link.efficiency, edge.link.latency.value(), edge.is_one_way),
                      edges.size());
    if (is_new)
      edges.push_back(edge);
    else
      ++edges[same->second].cables;
  }
  return edges;
}

class InfraExporter {
 public:
  explicit InfraExporter(const Cluster& cluster) : cluster_(cluster), edges_(EdgesOf(cluster)) {
    const size_t size = cluster.vertex_count() + edges_.size();
    if (size > kMostInfraExported)
      throw Error(
          fmt::format("cluster \"{}\" has {} parts and links, expected at most {} to write "
                      "as an infrastructure of InfraGraph",
                      cluster.name(), size, kMostInfraExported));
    uint32_t rank = 0;
    for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
      vertices_.push_back(cluster.VertexAt(id));
      specs_.push_back(vertices_.back().kind == VertexKind::kDevice ? cluster.SpecOf(rank++) : 0);
    }
  }

  InfraGraphExport Export() {
    if (!WriteMachines()) WriteAsOne();
    InfraJson json;
    json["name"] = InfraName(cluster_.name());
    json["description"] = WordsOfCluster().Text();
    json["devices"] = std::move(devices_);
    json["instances"] = std::move(instances_);
    between_.WriteTo(&json);
    return {json.dump(2) + "\n", Remarks()};
  }

 private:
  // A machine, or a switch of the fabric; in the order of the first vertex.
  struct Unit {
    std::string name;
    std::string node;  // "": a switch
    std::vector<VertexId> vertices = {};
    std::vector<NumberedGroup> components = {};  // members are positions in vertices
    InfraEdges edges = {};
    std::string shape = {};  // all that tells it from others
    InfraJson device = {};
  };

  std::string Alike(VertexId id) const {
    return fmt::format("{} {}", Name(vertices_[id].kind), specs_[id]);
  }

  InfraJson ComponentJson(const std::string& name, size_t count, VertexId id,
                          const std::string* node) const {
    InfraWords words;
    words.Add("kind", Name(vertices_[id].kind));
    if (vertices_[id].kind == VertexKind::kDevice)
      words.Add("device", InfraName(cluster_.device_specs()[specs_[id]].name));
    if (node != nullptr) words.Add("node", *node);
    const char* const choice = ChoiceOf(vertices_[id].kind);
    return {{"name", name},
            {"description", words.Text()},
            {"count", count},
            {"choice", choice},
            {choice, InfraJson::object()}};
  }

  // ---- A device for each kind of machine --------------------------------------------------------

  bool WriteMachines() {
    std::vector<Unit> units;
    if (!FindUnits(&units)) return false;
    place_.resize(vertices_.size());
    for (Unit& unit : units) NameParts(&unit);
    unit_of_.resize(vertices_.size());
    for (uint32_t i = 0; i < units.size(); ++i)
      for (const VertexId id : units[i].vertices) unit_of_[id] = i;
    for (const ClusterEdge& edge : edges_) {
      if (unit_of_[edge.from] == unit_of_[edge.to])
        units[unit_of_[edge.from]].edges.Add(place_[edge.from], place_[edge.to], edge.link,
                                             edge.is_one_way, edge.cables);
    }
    for (Unit& unit : units) WriteDevice(&unit);
    std::vector<std::string> names;
    std::vector<std::string> shapes;
    for (const Unit& unit : units) {
      names.push_back(unit.name);
      shapes.push_back(unit.shape);
    }
    const std::vector<NumberedGroup> instances = GroupByName(names, shapes);
    if (!AreRanksInOrder(units, instances)) return false;
    WriteInstances(units, instances);
    for (const ClusterEdge& edge : edges_) {
      if (unit_of_[edge.from] == unit_of_[edge.to]) continue;
      between_.Add(EndAt(edge.from), EndAt(edge.to), edge.link, edge.is_one_way, edge.cables);
    }
    return true;
  }

  bool FindUnits(std::vector<Unit>* units) const {
    std::map<std::string, size_t> machines;
    std::set<std::string> nodes;
    for (VertexId id = 0; id < vertices_.size(); ++id) {
      const Vertex& vertex = vertices_[id];
      if (vertex.node.empty()) {
        if (vertex.kind != VertexKind::kSwitch) return false;
        units->push_back({InfraName(vertex.name), "", {id}});
        continue;
      }
      const auto [known, is_new] = machines.emplace(vertex.node, units->size());
      if (is_new) units->push_back({InfraName(vertex.node), vertex.node});
      (*units)[known->second].vertices.push_back(id);
    }
    // A machine of one switch would be read as a part of the fabric.
    return std::none_of(units->begin(), units->end(), [&](const Unit& unit) {
      return !unit.node.empty() && unit.vertices.size() == 1 &&
             vertices_[unit.vertices.front()].kind == VertexKind::kSwitch;
    });
  }

  void NameParts(Unit* unit) {
    std::vector<std::string> names;
    std::vector<std::string> alike;
    for (const VertexId id : unit->vertices) {
      std::string_view name = vertices_[id].name;
      if (unit->node.empty())
        name = "switch";
      else if (name.starts_with(unit->node + "/"))
        name.remove_prefix(unit->node.size() + 1);
      names.push_back(InfraName(name));
      alike.push_back(Alike(id));
    }
    unit->components = GroupByName(names, alike);
    for (const NumberedGroup& component : unit->components)
      for (uint32_t i = 0; i < component.members.size(); ++i)
        place_[unit->vertices[component.members[i]]] = {"", component.name, i};
  }

  void WriteDevice(Unit* unit) {
    InfraJson components = InfraJson::array();
    for (const NumberedGroup& component : unit->components)
      components.push_back(ComponentJson(component.name, component.members.size(),
                                         unit->vertices[component.members.front()], nullptr));
    unit->device["name"] = "";
    unit->device["components"] = std::move(components);
    unit->edges.WriteTo(&unit->device);
    unit->shape = unit->device.dump();
    unit->edges = {};
  }

  bool AreRanksInOrder(const std::vector<Unit>& units,
                       const std::vector<NumberedGroup>& instances) const {
    std::vector<VertexId> devices;
    for (const NumberedGroup& instance : instances)
      for (const uint32_t u : instance.members)
        for (const NumberedGroup& component : units[u].components)
          for (const uint32_t member : component.members) {
            const VertexId id = units[u].vertices[member];
            if (vertices_[id].kind == VertexKind::kDevice) devices.push_back(id);
          }
    return devices == cluster_.devices();
  }

  void WriteInstances(std::vector<Unit>& units, const std::vector<NumberedGroup>& instances) {
    std::map<std::string, std::string> device_of;  // shape -> name
    std::map<std::string, uint32_t> named;
    instance_of_.resize(units.size());
    for (const NumberedGroup& instance : instances) {
      Unit& first = units[instance.members.front()];
      const auto [device, is_new] = device_of.emplace(first.shape, "");
      if (is_new) {
        const std::string name = first.node.empty() ? "switch" : "machine";
        const uint32_t number = ++named[name];
        device->second = number == 1 ? name : fmt::format("{}-{}", name, number);
        first.device["name"] = device->second;
        devices_.push_back(first.device);
      }
      instances_.push_back({{"name", instance.name},
                            {"device", device->second},
                            {"count", instance.members.size()}});
      for (uint32_t i = 0; i < instance.members.size(); ++i)
        instance_of_[instance.members[i]] = fmt::format("{}[{}]", instance.name, i);
    }
  }

  InfraEdges::End EndAt(VertexId id) const {
    InfraEdges::End end = place_[id];
    end.instance = instance_of_[unit_of_[id]];
    return end;
  }

  // ---- All in one device ------------------------------------------------------------------------

  void WriteAsOne() {
    std::set<std::string> used;
    const auto unique = [&](std::string name) {
      while (!used.insert(name).second) name += "-";
      return name;
    };
    std::map<std::string, std::string> nodes = {{"", ""}};
    for (const Vertex& vertex : vertices_)
      if (nodes.count(vertex.node) == 0) nodes[vertex.node] = unique(InfraName(vertex.node));
    used.clear();
    InfraJson components = InfraJson::array();
    std::vector<InfraEdges::End> ends;
    for (VertexId id = 0; id < vertices_.size(); ++id) {
      ends.push_back({"", unique(InfraName(vertices_[id].name)), 0});
      components.push_back(
          ComponentJson(ends.back().component, 1, id, &nodes.at(vertices_[id].node)));
    }
    InfraEdges edges;
    for (const ClusterEdge& edge : edges_)
      edges.Add(ends[edge.from], ends[edge.to], edge.link, edge.is_one_way, edge.cables);
    InfraJson device = {{"name", "cluster"}, {"components", std::move(components)}};
    edges.WriteTo(&device);
    devices_ = InfraJson::array({std::move(device)});
    instances_ = InfraJson::array({{{"name", "cluster"}, {"device", "cluster"}, {"count", 1}}});
  }

  // ---- What it does not say ---------------------------------------------------------------------

  InfraWords WordsOfCluster() const {
    InfraWords words;
    words.Add("drawn", "yes");
    const auto add = [&](const char* key, Seconds duration) {
      if (duration > Seconds(0)) words.Add(key, ExactText(duration));
    };
    add("step_overhead", cluster_.step_overhead());
    add("collective_overhead", cluster_.collective_overhead());
    add("channel_overhead", cluster_.channel_overhead());
    if (cluster_.network_plugin().name != "ib")
      words.Add("network_plugin", cluster_.network_plugin().name);
    return words;
  }

  std::vector<std::string> Remarks() const {
    std::vector<std::string> remarks = {
        "kinds, efficiencies and overheads stand in descriptions: rehearse import infragraph reads "
        "them back, other readers take them for text"};
    const bool are_one_way = std::any_of(edges_.begin(), edges_.end(),
                                         [](const ClusterEdge& edge) { return edge.is_one_way; });
    if (are_one_way)
      remarks.emplace_back(
          "edges of InfraGraph have no direction: that some lead one way is in descriptions too");
    if (HasFabric(cluster_))
      remarks.emplace_back(
          "routes between machines are left out: who reads this will search them, and not spread "
          "what crosses the fabric as this one does");
    if (!cluster_.rings().empty()) remarks.emplace_back("rings are left out");
    bool is_measured = cluster_.measured_collectives() != nullptr;
    for (const DeviceSpec& spec : cluster_.device_specs()) {
      is_measured = is_measured || spec.measured != nullptr;
      if (!IsKnownBySpec(spec))
        remarks.push_back(
            fmt::format("device {}: its name alone, nothing of what it can do", spec.name));
    }
    if (is_measured) remarks.emplace_back("times that a calibration measured are left out");
    return remarks;
  }

  const Cluster& cluster_;
  const std::vector<ClusterEdge> edges_;
  std::vector<Vertex> vertices_;
  std::vector<uint32_t> specs_;           // by vertex
  std::vector<uint32_t> unit_of_;         // by vertex
  std::vector<InfraEdges::End> place_;    // by vertex, within its unit
  std::vector<std::string> instance_of_;  // by unit: "node[3]"
  InfraJson devices_ = InfraJson::array();
  InfraJson instances_ = InfraJson::array();
  InfraEdges between_;
};

}  // namespace

InfraGraphExport ClusterToInfraGraph(const Cluster& cluster) {
  return InfraExporter(cluster).Export();
}

}  // namespace rehearse
