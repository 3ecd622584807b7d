#include "tools/foreign/machines/infragraph/import_infragraph.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/infragraph/infragraph_expand.h"
#include "tools/foreign/machines/infragraph/infragraph_file.h"
#include "tools/foreign/machines/infragraph/infragraph_rates.h"
#include "tools/foreign/machines/switch_blocks.h"

namespace rehearse {
namespace {

// As of a fabric (tools/foreign/machines/fabric_plan.cc).
constexpr uint64_t kMostInfraDrawn = 400'000;

double InfraNumber(const InfraWords& words, const Place& place, const char* key, double most) {
  const std::string text = words.At(key);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end || !(value > 0) || value > most)
    throw Error(place, fmt::format("found {}={} in the description, expected a number above 0, at "
                                   "most {}",
                                   key, Quoted(text), most));
  return value;
}

class InfraImporter {
 public:
  InfraImporter(std::string_view text, const std::string& file, const std::string& device)
      : file_(file),
        graph_(ReadInfraGraph(text, file, remarks_)),
        expanded_(ExpandInfra(graph_, remarks_)),
        vertices_(expanded_.vertices),
        cluster_(graph_.name.empty() ? ClusterNameOf(file) : Printable(graph_.name)) {
    if (!device.empty()) chosen_ = GpuKindOf(device);
  }

  ImportedCluster Import() {
    into_.resize(vertices_.size());
    std::iota(into_.begin(), into_.end(), 0u);
    for (const InfraJoin& join : expanded_.joins)
      lines_.push_back({join.a, join.b, join.link, join.count, {}});
    FindDevices();
    if (!expanded_.is_drawn) FoldPorts();
    FindSwitchKinds();
    FindRates();
    if (!expanded_.is_drawn) {
      JoinNvSwitches();
      JoinFabric();
    }
    Draw();
    ReadFigures();
    ImportedCluster imported;
    imported.remarks = remarks_.Lines();
    cluster_.AddNote(
        fmt::format("Imported from {}, an infrastructure of InfraGraph.", Printable(file_)));
    for (const std::string& remark : imported.remarks) cluster_.AddNote(remark);
    imported.cluster = FinishImported(cluster_, file_);
    return imported;
  }

 private:
  struct Line {
    uint32_t a = 0;
    uint32_t b = 0;
    const InfraLink* link = nullptr;
    uint32_t count = 1;
    ClusterLink figures = {};  // of all of them
  };

  static bool IsOneWay(const Line& line) { return line.link->words.Has("one_way"); }

  // ---- Vertices that become one -----------------------------------------------------------------

  uint32_t Into(uint32_t vertex) const {
    while (into_[vertex] != vertex) vertex = into_[vertex];
    return vertex;
  }
  bool IsThere(uint32_t vertex) const {
    return into_[vertex] == vertex && gone_.count(vertex) == 0;
  }

  // Lines between what the vertices have become; several of one link, or where rates are known of
  // one kind, are one, with the sum of what they have.
  enum class Alike : uint8_t { kByLink, kByKind };
  void Rejoin(Alike alike) {
    std::map<std::tuple<uint32_t, uint32_t, const InfraLink*, LinkKind, bool>, size_t> known;
    std::vector<Line> joined;
    for (Line line : lines_) {
      line.a = Into(line.a);
      line.b = Into(line.b);
      if (line.a == line.b || gone_.count(line.a) > 0 || gone_.count(line.b) > 0) continue;
      if (!IsOneWay(line) && line.a > line.b) std::swap(line.a, line.b);
      const std::tuple key(line.a, line.b, alike == Alike::kByLink ? line.link : nullptr,
                           line.figures.kind, IsOneWay(line));
      const auto [same, is_new] = known.emplace(key, joined.size());
      if (is_new) {
        joined.push_back(line);
      } else {
        joined[same->second].count += line.count;
        joined[same->second].figures.bandwidth += line.figures.bandwidth;
      }
    }
    lines_ = std::move(joined);
  }

  // Ports that lead to one neighbour in their machine, in turns: a transceiver is a part of its
  // port, and that of its NIC.
  void FoldPorts() {
    constexpr int kTurns = 8;
    for (int turn = 0; turn < kTurns; ++turn) {
      std::map<uint32_t, std::set<uint32_t>> inside;  // neighbours of ports
      for (const Line& line : lines_) {
        if (vertices_[line.a].machine != vertices_[line.b].machine) continue;
        if (vertices_[line.a].is_port) inside[line.a].insert(line.b);
        if (vertices_[line.b].is_port) inside[line.b].insert(line.a);
      }
      bool is_done = true;
      for (const auto& [port, neighbours] : inside) {
        if (neighbours.size() != 1 || Into(*neighbours.begin()) == port) continue;
        into_[port] = Into(*neighbours.begin());
        is_done = false;
      }
      if (is_done) return;
      Rejoin(Alike::kByLink);
    }
  }

  // ---- What they are ----------------------------------------------------------------------------

  void FindDevices() {
    for (const InfraVertex& vertex : vertices_) {
      if (vertex.kind != VertexKind::kDevice) continue;
      const auto [kind, is_new] = gpus_.emplace(vertex.component, GpuKind());
      if (!is_new) continue;
      kind->second = KindOf(*vertex.component);
      if (usual_.device.empty()) usual_ = kind->second;
    }
    if (gpus_.empty())
      throw Error({file_, 0, ""},
                  "there is no xpu in this infrastructure, expected instances of devices that have "
                  "some");
  }

  GpuKind KindOf(const InfraComponent& component) {
    if (chosen_) return *chosen_;
    const std::string ours = component.words.At("device");
    if (!ours.empty()) {
      if (auto kind = FindGpuKindInText(ours)) return *kind;
    } else if (auto kind = FindGpuKindInText(component.description)) {
      remarks_.Add(fmt::format("taken for the device {}, as the description has it (--device names "
                               "another)",
                               kind->device),
                   Printable(component.name));
      return *kind;
    }
    remarks_.Add(fmt::format("an xpu of a kind that is not known; taken for a {} (--device names "
                             "another)",
                             kAssumedDevice),
                 Printable(component.name));
    return GpuKindOf(kAssumedDevice);
  }

  void FindSwitchKinds() {
    std::vector<uint32_t> links(vertices_.size());
    std::vector<uint32_t> nvlinks(vertices_.size());
    for (const Line& line : lines_) {
      const bool is_nvlink = LinkKindOfText(line.link->text) == LinkKind::kNvLink;
      for (const uint32_t end : {line.a, line.b}) {
        ++links[end];
        nvlinks[end] += is_nvlink ? 1 : 0;
      }
    }
    for (uint32_t i = 0; i < vertices_.size(); ++i) {
      InfraVertex& vertex = vertices_[i];
      const bool is_whole_switch =
          vertex.component == nullptr && vertex.kind == VertexKind::kSwitch;
      if (!vertex.is_open && !is_whole_switch) continue;
      const auto said = SwitchKindOfText(vertex.text);
      if (is_whole_switch) {
        const bool is_nvswitch = links[i] > 0 && nvlinks[i] == links[i];
        if (is_nvswitch || said == VertexKind::kNvSwitch) vertex.kind = VertexKind::kNvSwitch;
      } else if (said) {
        vertex.kind = *said;
      } else {
        vertex.kind = nvlinks[i] > 0           ? VertexKind::kNvSwitch
                      : vertex.machine.empty() ? VertexKind::kSwitch
                                               : VertexKind::kPcieSwitch;
      }
    }
  }

  // ---- Rates ------------------------------------------------------------------------------------

  const GpuKind& GpuAt(const Line& line) const {
    for (const uint32_t end : {line.a, line.b}) {
      const auto known = gpus_.find(vertices_[end].component);
      if (known != gpus_.end()) return known->second;
    }
    return usual_;
  }

  void FindRates() {
    std::vector<uint32_t> nvlinks(vertices_.size());  // edges of NVLink
    for (Line& line : lines_) {
      line.figures.kind = KindOf(line);
      if (line.figures.kind != LinkKind::kNvLink) continue;
      nvlinks[line.a] += line.count;
      nvlinks[line.b] += line.count;
    }
    std::set<std::pair<const InfraLink*, std::string>> said;
    for (Line& line : lines_) {
      uint32_t shared = 0;
      for (const uint32_t end : {line.a, line.b})
        if (vertices_[end].kind == VertexKind::kDevice) shared = std::max(shared, nvlinks[end]);
      const InfraRate rate = InfraRateOf(*line.link, line.figures.kind, vertices_[line.a],
                                         vertices_[line.b], GpuAt(line), shared);
      line.figures = rate.link;
      line.figures.bandwidth *= line.count;
      TakeWords(&line);
      if (!rate.assumed.empty() && said.emplace(line.link, rate.assumed).second)
        remarks_.Add(rate.assumed, fmt::format("link {}", Printable(line.link->name)));
    }
  }

  static LinkKind KindOfName(const InfraLink& link, const std::string& name) {
    std::string names;
    for (const LinkKind kind : {LinkKind::kNvLink, LinkKind::kXgmi, LinkKind::kPcie,
                                LinkKind::kSocket, LinkKind::kNetwork, LinkKind::kMemory}) {
      if (name == Name(kind)) return kind;
      names += (names.empty() ? "" : ", ") + std::string(Name(kind));
    }
    throw Error(link.place, fmt::format("found the kind {} in the description, expected one of {}",
                                        Quoted(name), names));
  }
  LinkKind KindOf(const Line& line) const {
    if (line.link->words.Has("kind")) return KindOfName(*line.link, line.link->words.At("kind"));
    return InfraLinkKind(*line.link, vertices_[line.a], vertices_[line.b]);
  }

  static void TakeWords(Line* line) {
    const InfraLink& link = *line->link;
    if (link.words.Has("kind")) line->figures.efficiency = 1;
    if (link.words.Has("efficiency"))
      line->figures.efficiency = InfraNumber(link.words, link.place, "efficiency", 1);
  }

  // ---- Switches that become one -----------------------------------------------------------------

  static void Rename(InfraVertex* vertex, size_t members) {
    vertex->name += fmt::format("+{}", members - 1);
  }

  void JoinNvSwitches() {
    std::map<uint32_t, std::set<uint32_t>> neighbours;
    for (const Line& line : lines_) {
      if (vertices_[line.a].kind == VertexKind::kNvSwitch) neighbours[line.a].insert(line.b);
      if (vertices_[line.b].kind == VertexKind::kNvSwitch) neighbours[line.b].insert(line.a);
    }
    std::map<std::pair<std::string, std::set<uint32_t>>, std::vector<uint32_t>> alike;
    for (const auto& [vertex, others] : neighbours)
      alike[{vertices_[vertex].machine, others}].push_back(vertex);
    for (const auto& [what, members] : alike) {
      if (members.size() < 2) continue;
      for (const uint32_t member : members) into_[member] = members.front();
      Rename(&vertices_[members.front()], members.size());
      remarks_.Add(
          "NVSwitches that join the same others, drawn as one (the first's name + how many more)",
          vertices_[members.front()].name);
    }
    Rejoin(Alike::kByKind);
  }

  void JoinFabric() {
    FabricPlan plan;
    std::vector<uint32_t> vertex_of;
    std::map<uint32_t, uint32_t> switches;  // vertex -> position in the plan
    for (uint32_t i = 0; i < vertices_.size(); ++i) {
      if (!IsThere(i) || vertices_[i].kind != VertexKind::kSwitch) continue;
      switches.emplace(i, static_cast<uint32_t>(vertex_of.size()));
      vertex_of.push_back(i);
      plan.switches.push_back({vertices_[i].name, 0});
    }
    plan.nodes.emplace_back();  // one will do: only what is cabled counts
    for (const Line& line : lines_) {
      const auto a = switches.find(line.a);
      const auto b = switches.find(line.b);
      if (a != switches.end() && b != switches.end())
        plan.trunks.push_back({a->second, b->second, line.figures.bandwidth});
      else if (a != switches.end() || b != switches.end())
        plan.nodes.front().ports.push_back(
            {0, a != switches.end() ? a->second : b->second, line.figures.bandwidth});
    }
    const SwitchBlocks blocks(plan);
    for (uint32_t i = 0; i < vertex_of.size(); ++i) {
      if (blocks.BlockOf(i) != kNoBlock) continue;
      gone_.insert(vertex_of[i]);
      remarks_.Add("a switch that no machine reaches is left out", vertices_[vertex_of[i]].name);
    }
    for (const std::vector<uint32_t>& members : blocks.members()) {
      if (members.size() < 2) continue;
      const uint32_t first = vertex_of[members.front()];
      for (const uint32_t member : members) into_[vertex_of[member]] = first;
      Rename(&vertices_[first], members.size());
      remarks_.Add(
          "switches that join the same others, drawn as one (the first's name + how many more): "
          "what crosses them is spread evenly, as adaptive routing and spraying come close to",
          vertices_[first].name);
    }
    Rejoin(Alike::kByKind);
  }

  // ---- The cluster ------------------------------------------------------------------------------

  void Draw() {
    std::vector<bool> is_joined(vertices_.size());
    std::vector<bool> is_cabled(vertices_.size());
    for (const Line& line : lines_) {
      for (const uint32_t end : {line.a, line.b}) {
        is_joined[end] = true;
        if (line.figures.kind == LinkKind::kNetwork) is_cabled[end] = true;
      }
    }
    if (vertices_.size() - gone_.size() + lines_.size() > kMostInfraDrawn)
      throw Error({file_, 0, ""},
                  fmt::format("found {} parts and {} links, a drawn cluster has at most {} of both",
                              vertices_.size(), lines_.size(), kMostInfraDrawn));
    std::map<std::string, uint32_t> specs;
    std::vector<VertexId> ids(vertices_.size());
    for (uint32_t i = 0; i < vertices_.size(); ++i) {
      const InfraVertex& vertex = vertices_[i];
      if (!IsThere(i)) continue;
      if (vertex.kind == VertexKind::kDevice) {
        const GpuKind& gpu = gpus_.at(vertex.component);
        const auto [spec, is_new] = specs.emplace(gpu.device, 0);
        if (is_new) spec->second = cluster_.AddDeviceSpec(SpecOf(gpu));
        ids[i] = cluster_.AddVertex({vertex.name, vertex.kind, vertex.machine}, spec->second);
        continue;
      }
      if (!is_joined[i] && !expanded_.is_drawn) {
        remarks_.Add("joined to nothing, left out", vertex.name);
        continue;
      }
      if (vertex.kind == VertexKind::kNic && !is_cabled[i] && !expanded_.is_drawn)
        remarks_.Add("a NIC that no cable leads to", vertex.name);
      ids[i] = cluster_.AddVertex({vertex.name, vertex.kind, vertex.machine});
    }
    for (const Line& line : lines_) {
      constexpr double kMostCables = 1000;
      uint32_t cables = 1;
      if (line.link->words.Has("cables"))
        cables = static_cast<uint32_t>(
            InfraNumber(line.link->words, line.link->place, "cables", kMostCables));
      for (uint32_t cable = 0; cable < cables; ++cable) {
        if (IsOneWay(line))
          cluster_.AddLink(ids[line.a], ids[line.b], line.figures);
        else
          cluster_.AddLinks(ids[line.a], ids[line.b], line.figures);
      }
    }
  }

  void ReadFigures() {
    const auto read = [&](const char* key, auto take) {
      if (!graph_.words.Has(key)) return;
      try {
        take(graph_.words.At(key));
      } catch (const Error& error) {
        throw Error(graph_.place, fmt::format("{} in the description: {}", key, error.what()));
      }
    };
    read("step_overhead",
         [&](const std::string& text) { cluster_.set_step_overhead(ParseDuration(text)); });
    read("collective_overhead",
         [&](const std::string& text) { cluster_.set_collective_overhead(ParseDuration(text)); });
    read("channel_overhead",
         [&](const std::string& text) { cluster_.set_channel_overhead(ParseDuration(text)); });
    read("network_plugin",
         [&](const std::string& text) { cluster_.set_network_plugin(FindNetworkPlugin(text)); });
  }

  const std::string file_;
  Remarks remarks_;
  const InfraGraph graph_;
  ExpandedInfra expanded_;
  std::vector<InfraVertex>& vertices_;
  ClusterBuilder cluster_;
  std::optional<GpuKind> chosen_;
  std::map<const InfraComponent*, GpuKind> gpus_;
  GpuKind usual_;               // the first
  std::vector<uint32_t> into_;  // by vertex: what it has become a part of
  std::set<uint32_t> gone_;
  std::vector<Line> lines_;
};

}  // namespace

ImportedCluster ImportInfraGraph(std::string_view text, const std::string& file,
                                 const std::string& device) {
  return InfraImporter(text, file, device).Import();
}

}  // namespace rehearse
