#include "tools/foreign/machines/infragraph/infragraph_expand.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/known_names.h"
#include "tools/foreign/machines/fabric_plan.h"

namespace rehearse {
namespace {

constexpr uint64_t kMostInfraParts = 1'000'000;
constexpr uint32_t kDeepestInfra = 16;  // devices within devices
constexpr uint32_t kNoInfraVertex = std::numeric_limits<uint32_t>::max();

// A device with all that is within it; its parts are numbered one behind the other.
struct InfraLayout {
  const InfraDevice* device = nullptr;
  std::map<std::string, uint32_t, std::less<>> components = {};  // by name
  std::vector<uint64_t> offsets = {};                            // first part of each component
  std::vector<const InfraLayout*> inner = {};                    // null: parts of their own
  uint64_t parts = 0;
  uint64_t copies = 1;  // itself and all devices within it
  uint32_t depth = 1;
  bool has_xpu = false;
  bool has_cpu = false;
  bool has_nic = false;
  bool has_port = false;
  bool has_switch = false;
  bool holds_machines = false;
  bool is_drawn = false;  // has words of our own

  bool IsMachine() const { return has_xpu && (has_cpu || has_nic); }
  // Within another device.
  bool IsNic() const { return !has_xpu && !is_drawn && (has_nic || has_port) && parts > 0; }
  bool IsHostWithoutXpus() const {
    return !has_xpu && !is_drawn && has_nic && has_cpu && !has_port && !has_switch;
  }
};

class InfraLayouts {
 public:
  explicit InfraLayouts(const InfraGraph& graph) {
    for (const InfraDevice& device : graph.devices) {
      const auto [twin, is_new] = devices_.emplace(device.name, &device);
      if (!is_new)
        throw Error(device.place, fmt::format("there is another device {}", Quoted(device.name)));
    }
  }

  // `by` says who wants it.
  const InfraLayout& Find(const std::string& name, const Place& by) {
    const auto known = layouts_.find(name);
    if (known != layouts_.end()) return known->second;
    const auto device = devices_.find(name);
    if (device == devices_.end()) {
      std::vector<std::string> names;
      for (const auto& [one, where] : devices_) names.push_back(Printable(one));
      throw Error(by, fmt::format("there is no device {}{}", Quoted(name),
                                  KnownNames(Printable(name), names)));
    }
    if (open_.size() >= kDeepestInfra || !open_.insert(name).second)
      throw Error(by, fmt::format("device {} is within itself, or more than {} deep", Quoted(name),
                                  kDeepestInfra));
    InfraLayout layout = LayOut(*device->second);
    open_.erase(name);
    return layouts_.emplace(name, std::move(layout)).first->second;
  }

 private:
  InfraLayout LayOut(const InfraDevice& device) {
    InfraLayout layout;
    layout.device = &device;
    for (uint32_t i = 0; i < device.components.size(); ++i) {
      const InfraComponent& component = device.components[i];
      if (!layout.components.emplace(component.name, i).second)
        throw Error(component.place,
                    fmt::format("there is another component {}", Quoted(component.name)));
      layout.offsets.push_back(layout.parts);
      layout.inner.push_back(nullptr);
      if (component.choice == InfraChoice::kDevice) {
        const InfraLayout& inner = Find(component.name, component.place);
        layout.inner.back() = &inner;
        layout.parts += component.count * inner.parts;
        layout.copies += component.count * inner.copies;
        layout.has_xpu = layout.has_xpu || inner.has_xpu;
        layout.has_cpu = layout.has_cpu || (inner.has_cpu && !inner.IsNic());
        layout.has_nic = layout.has_nic || inner.has_nic || inner.IsNic();
        layout.has_port = layout.has_port || inner.has_port;
        layout.has_switch = layout.has_switch || inner.has_switch;
        layout.holds_machines = layout.holds_machines || inner.holds_machines || inner.IsMachine();
        layout.is_drawn = layout.is_drawn || inner.is_drawn;
      } else {
        layout.parts += component.count;
        layout.has_xpu = layout.has_xpu || component.choice == InfraChoice::kXpu;
        layout.has_cpu = layout.has_cpu || component.choice == InfraChoice::kCpu;
        layout.has_nic = layout.has_nic || component.choice == InfraChoice::kNic;
        layout.has_port = layout.has_port || component.choice == InfraChoice::kPort;
        layout.has_switch = layout.has_switch || component.choice == InfraChoice::kSwitch;
        layout.is_drawn = layout.is_drawn || component.words.Has("kind");
      }
      if (layout.parts + layout.copies > kMostInfraParts)
        throw Error(component.place, fmt::format("device {} has more than {} parts, expected fewer",
                                                 Quoted(device.name), kMostInfraParts));
    }
    return layout;
  }

  std::map<std::string, const InfraDevice*, std::less<>> devices_;
  std::map<std::string, InfraLayout, std::less<>> layouts_;
  std::set<std::string> open_;
};

// What one step of an end means: each of `count` indices, so far apart, from `first` on.
struct InfraStride {
  uint64_t first = 0;
  uint64_t apart = 0;
  uint64_t count = 0;
};

// All parts of an end, the last step fastest.
struct InfraEndParts {
  std::vector<InfraStride> strides;
  uint64_t count = 1;

  uint64_t At(uint64_t index) const {
    uint64_t part = 0;
    for (auto stride = strides.rbegin(); stride != strides.rend(); ++stride) {
      part += stride->first + index % stride->count * stride->apart;
      index /= stride->count;
    }
    return part;
  }
};

class InfraExpander {
 public:
  InfraExpander(const InfraGraph& graph, Remarks& remarks)
      : graph_(graph), remarks_(remarks), layouts_(graph) {}

  ExpandedInfra Expand() {
    expanded_.is_drawn = graph_.words.At("drawn") == "yes";
    PlaceInstances();
    for (const auto& placed : placed_) AddInstance(placed);
    for (const auto& placed : placed_) {
      for (uint32_t i = 0; i < placed.instance->count; ++i)
        AddInnerEdges(*placed.layout, placed.first + i * placed.layout->parts);
    }
    for (const InfraEdge& edge : graph_.edges)
      AddEdge(edge, graph_.links, PartsOfInstance(edge.from), PartsOfInstance(edge.to), 0);
    JoinVertices();
    SayUnusedLinks();
    return std::move(expanded_);
  }

 private:
  struct Placed {
    const InfraInstance* instance = nullptr;
    const InfraLayout* layout = nullptr;
    uint64_t first = 0;  // part
  };
  struct PartEdge {
    uint32_t a = 0;
    uint32_t b = 0;
    const InfraLink* link = nullptr;
  };

  // Before anything is made: how large it would become.
  void PlaceInstances() {
    uint64_t parts = 0;
    uint64_t copies = 0;
    for (const InfraInstance& instance : graph_.instances) {
      const InfraLayout& layout = layouts_.Find(instance.device, instance.place);
      if (!by_name_.emplace(instance.name, static_cast<uint32_t>(placed_.size())).second)
        throw Error(instance.place,
                    fmt::format("there is another instance {}", Quoted(instance.name)));
      placed_.push_back({&instance, &layout, parts});
      parts += instance.count * layout.parts;
      copies += instance.count * layout.copies;
      if (parts + copies > kMostInfraParts)
        throw Error(instance.place,
                    fmt::format("the infrastructure has more than {} parts, expected fewer",
                                kMostInfraParts));
    }
    vertex_of_.assign(parts, kNoInfraVertex);
  }

  // ---- Vertices ---------------------------------------------------------------------------------

  std::string Unique(std::string name) {
    while (!names_.insert(name).second) name += "-";
    return name;
  }
  uint32_t Add(InfraVertex vertex) {
    vertex.name = Unique(std::move(vertex.name));
    expanded_.vertices.push_back(std::move(vertex));
    return static_cast<uint32_t>(expanded_.vertices.size() - 1);
  }
  static std::string Numbered(const std::string& name, uint32_t index, uint32_t count) {
    return count > 1 ? fmt::format("{}{}", PlanName(name), index) : PlanName(name);
  }

  void AddInstance(const Placed& placed) {
    const InfraLayout& layout = *placed.layout;
    const InfraInstance& instance = *placed.instance;
    if (layout.IsHostWithoutXpus()) {
      remarks_.Add("hosts without accelerators are left out", Quoted(instance.name));
      return;
    }
    const auto& components = layout.device->components;
    const bool is_fabric = layout.is_drawn && components.size() == 1 && layout.parts == 1 &&
                           components.front().words.At("kind") == Name(VertexKind::kSwitch);
    for (uint32_t i = 0; i < instance.count; ++i) {
      const std::string name = Numbered(instance.name, i, instance.count);
      const uint64_t first = placed.first + i * layout.parts;
      if (is_fabric) {
        AddPart(components.front(), name, "", first);
      } else if (layout.has_xpu || layout.is_drawn) {
        Walk(layout, first, name + "/", layout.holds_machines ? std::string() : name);
      } else if (layout.parts > 0) {
        AddWhole(layout, first, name, "", VertexKind::kSwitch);
      }
    }
  }

  void AddWhole(const InfraLayout& layout, uint64_t first, const std::string& name,
                const std::string& machine, VertexKind kind) {
    const uint32_t vertex = Add({.name = name,
                                 .machine = machine,
                                 .component = nullptr,
                                 .text = layout.device->text,
                                 .kind = kind});
    std::fill_n(vertex_of_.begin() + static_cast<std::ptrdiff_t>(first), layout.parts, vertex);
  }

  void AddPart(const InfraComponent& component, const std::string& name, const std::string& machine,
               uint64_t part) {
    InfraVertex vertex = {
        .name = name, .machine = machine, .component = &component, .text = component.text};
    switch (component.choice) {
      case InfraChoice::kXpu:
        vertex.kind = VertexKind::kDevice;
        break;
      case InfraChoice::kCpu:
        vertex.kind = VertexKind::kSocket;
        break;
      case InfraChoice::kNic:
        vertex.kind = VertexKind::kNic;
        break;
      case InfraChoice::kPort:
        vertex.kind = VertexKind::kNic;
        vertex.is_port = true;
        break;
      case InfraChoice::kMemory:
        if (said_.insert(&component).second)
          remarks_.Add("memory is left out: nothing goes through it", Quoted(component.name));
        return;
      case InfraChoice::kSwitch:
      case InfraChoice::kCustom:
      case InfraChoice::kDevice:
        vertex.is_open = true;
        break;
    }
    if (component.words.Has("kind")) TakeKind(component, &vertex);
    if (component.words.Has("node")) {
      vertex.machine = PlanNameOrNone(component.words.At("node"));
      vertex.name = PlanName(component.name);
    }
    vertex_of_[part] = Add(std::move(vertex));
  }

  static std::string PlanNameOrNone(const std::string& text) {
    return text.empty() ? text : PlanName(text);
  }

  static void TakeKind(const InfraComponent& component, InfraVertex* vertex) {
    constexpr std::array kKinds = {VertexKind::kDevice,     VertexKind::kNic,
                                   VertexKind::kPcieSwitch, VertexKind::kSocket,
                                   VertexKind::kNvSwitch,   VertexKind::kSwitch};
    const std::string given = component.words.At("kind");
    std::vector<std::string> names;
    for (const VertexKind kind : kKinds) {
      names.emplace_back(Name(kind));
      if (given != names.back()) continue;
      const bool is_device = kind == VertexKind::kDevice;
      if (is_device != (component.choice == InfraChoice::kXpu)) break;
      vertex->kind = kind;
      vertex->is_open = false;
      vertex->is_port = false;
      return;
    }
    throw Error(component.place,
                fmt::format("found the kind {} in the description, expected one of {}, and {} of "
                            "an xpu alone",
                            Quoted(given), fmt::join(names, ", "), names.front()));
  }

  void Walk(const InfraLayout& layout, uint64_t first, const std::string& prefix,
            const std::string& machine) {
    for (size_t c = 0; c < layout.inner.size(); ++c) {
      const InfraComponent& component = layout.device->components[c];
      const InfraLayout* const inner = layout.inner[c];
      for (uint32_t i = 0; i < component.count; ++i) {
        const std::string name = prefix + Numbered(component.name, i, component.count);
        const uint64_t part = first + layout.offsets[c] + (inner ? inner->parts : 1) * i;
        if (inner == nullptr)
          AddPart(component, name, machine, part);
        else if (inner->IsNic())
          AddWhole(*inner, part, name, machine, VertexKind::kNic);
        else if (layout.holds_machines && inner->IsMachine() && !inner->holds_machines)
          Walk(*inner, part, name + "/", name);
        else
          Walk(*inner, part, name + (inner->holds_machines ? "/" : "-"), machine);
      }
    }
  }

  // ---- Edges ------------------------------------------------------------------------------------

  static InfraStride Indices(const InfraSlice& slice, uint32_t count, const Place& by) {
    const uint32_t begin = slice.begin.value_or(0);
    const uint32_t end = slice.end.value_or(count);
    if (begin >= end || end > count)
      throw Error(by, fmt::format("found {} of {} to {}, expected some of 0 to {}",
                                  Quoted(slice.name), begin, end, count));
    return {begin, slice.step, (end - begin + slice.step - 1) / slice.step};
  }

  // Of the device; null: what the end has gone into is a part already.
  static uint32_t ComponentOf(const InfraLayout* layout, const InfraSlice& slice, const Place& by) {
    std::vector<std::string> names;
    if (layout != nullptr) {
      const auto known = layout->components.find(slice.name);
      if (known != layout->components.end()) return known->second;
      for (const auto& [name, position] : layout->components) names.push_back(Printable(name));
    }
    throw Error(by, fmt::format("there is no component {} here{}", Quoted(slice.name),
                                KnownNames(Printable(slice.name), names)));
  }

  // `layout` is that of the device that the end is in.
  static void AddParts(const InfraEnd& end, size_t step, const InfraLayout* layout,
                       InfraEndParts* parts) {
    for (; step < end.steps.size(); ++step) {
      const InfraSlice& slice = end.steps[step];
      const uint32_t c = ComponentOf(layout, slice, end.place);
      const InfraLayout* const inner = layout->inner[c];
      const uint64_t size = inner == nullptr ? 1 : inner->parts;
      InfraStride stride = Indices(slice, layout->device->components[c].count, end.place);
      stride.first = layout->offsets[c] + stride.first * size;
      stride.apart *= size;
      parts->strides.push_back(stride);
      parts->count *= stride.count;
      layout = inner;
    }
    if (layout != nullptr && !layout->IsNic())
      throw Error(end.place, fmt::format("found all of device {}, expected one of its components",
                                         Quoted(layout->device->name)));
  }

  InfraEndParts PartsOfInstance(const InfraEnd& end) const {
    const InfraSlice& slice = end.steps.front();
    const auto known = by_name_.find(slice.name);
    if (known == by_name_.end()) {
      std::vector<std::string> names;
      for (const Placed& placed : placed_) names.push_back(Printable(placed.instance->name));
      throw Error(end.place, fmt::format("there is no instance {}{}", Quoted(slice.name),
                                         KnownNames(Printable(slice.name), names)));
    }
    const Placed& placed = placed_[known->second];
    InfraStride stride = Indices(slice, placed.instance->count, end.place);
    stride.first = placed.first + stride.first * placed.layout->parts;
    stride.apart *= placed.layout->parts;
    InfraEndParts parts = {{stride}, stride.count};
    AddParts(end, 1, placed.layout, &parts);
    return parts;
  }

  void AddInnerEdges(const InfraLayout& layout, uint64_t first) {
    for (const InfraEdge& edge : layout.device->edges) {
      InfraEndParts from;
      InfraEndParts to;
      AddParts(edge.from, 0, &layout, &from);
      AddParts(edge.to, 0, &layout, &to);
      AddEdge(edge, layout.device->links, from, to, first);
    }
    for (size_t c = 0; c < layout.inner.size(); ++c) {
      const InfraLayout* const inner = layout.inner[c];
      if (inner == nullptr) continue;
      for (uint32_t i = 0; i < layout.device->components[c].count; ++i)
        AddInnerEdges(*inner, first + layout.offsets[c] + i * inner->parts);
    }
  }

  void AddEdge(const InfraEdge& edge, const std::vector<InfraLink>& links,
               const InfraEndParts& from, const InfraEndParts& to, uint64_t first) {
    const InfraLink& link = links[edge.link];
    used_.insert(&link);
    const uint64_t count =
        edge.is_many_to_many ? from.count * to.count : std::min(from.count, to.count);
    edges_looked_at_ += count + 1;
    if (edges_looked_at_ > kMostInfraParts)
      throw Error(edge.place, fmt::format("the infrastructure has more than {} edges, expected "
                                          "fewer",
                                          kMostInfraParts));
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t a = first + from.At(edge.is_many_to_many ? i / to.count : i);
      const uint64_t b = first + to.At(edge.is_many_to_many ? i % to.count : i);
      if (a != b) edges_.push_back({static_cast<uint32_t>(a), static_cast<uint32_t>(b), &link});
    }
  }

  // InfraGraph has one edge between two parts, which more than one line may name; so it is here,
  // for each link. Edges of different parts of two vertices are counted.
  void JoinVertices() {
    std::set<std::tuple<uint32_t, uint32_t, const InfraLink*>> seen;
    std::map<std::tuple<uint32_t, uint32_t, const InfraLink*>, size_t> joins;
    for (PartEdge edge : edges_) {
      const bool is_one_way = edge.link->words.Has("one_way");
      if (!is_one_way && edge.a > edge.b) std::swap(edge.a, edge.b);
      if (!seen.emplace(edge.a, edge.b, edge.link).second) continue;
      uint32_t a = vertex_of_[edge.a];
      uint32_t b = vertex_of_[edge.b];
      if (a == b || a == kNoInfraVertex || b == kNoInfraVertex) continue;
      if (!is_one_way && a > b) std::swap(a, b);
      const auto [known, is_new] =
          joins.emplace(std::tuple(a, b, edge.link), expanded_.joins.size());
      if (is_new)
        expanded_.joins.push_back({a, b, edge.link, 1});
      else
        ++expanded_.joins[known->second].count;
    }
  }

  void SayUnusedLinks() {
    const auto look = [&](const std::vector<InfraLink>& links) {
      for (const InfraLink& link : links)
        if (used_.count(&link) == 0) remarks_.Add("a link that no edge uses", Quoted(link.name));
    };
    std::set<const InfraLayout*> looked;
    for (const Placed& placed : placed_)
      if (looked.insert(placed.layout).second) look(placed.layout->device->links);
    look(graph_.links);
  }

  const InfraGraph& graph_;
  Remarks& remarks_;
  InfraLayouts layouts_;
  std::map<std::string, uint32_t, std::less<>> by_name_;  // instance -> position in placed_
  std::vector<Placed> placed_;
  std::vector<uint32_t> vertex_of_;  // by part
  std::set<std::string> names_;
  std::vector<PartEdge> edges_;
  uint64_t edges_looked_at_ = 0;
  std::set<const InfraLink*> used_;
  std::set<const InfraComponent*> said_;  // to be left out
  ExpandedInfra expanded_;
};

}  // namespace

ExpandedInfra ExpandInfra(const InfraGraph& graph, Remarks& remarks) {
  return InfraExpander(graph, remarks).Expand();
}

}  // namespace rehearse
