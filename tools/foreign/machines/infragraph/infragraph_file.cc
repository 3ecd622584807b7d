#include "tools/foreign/machines/infragraph/infragraph_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace {

constexpr const char* kInfraExpected = "an infrastructure of InfraGraph (YAML or JSON)";

// Of another spelling: "giga_bits_per_second" is gigabitspersecond.
std::string WithoutUnderscores(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  return text;
}

std::optional<uint32_t> InfraIndex(std::string_view digits) {
  uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, fault] = std::from_chars(digits.data(), end, value);
  if (fault != std::errc() || stop != end || value > kMostInfraCount) return std::nullopt;
  return value;
}

InfraSlice ParseInfraSlice(std::string_view text, const JsonReader& reader) {
  const auto fail = [&] {
    reader.Expected("names with Python's slices such as \"gpu[0:8]\" or \"nic[2].port\"");
  };
  const size_t open = text.find('[');
  InfraSlice slice;
  slice.name = std::string(text.substr(0, open));
  if (slice.name.empty()) fail();
  if (open == std::string_view::npos) return slice;
  if (!text.ends_with(']')) fail();
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  std::vector<std::string_view> parts;
  for (size_t colon = 0; colon != std::string_view::npos; inside.remove_prefix(colon + 1)) {
    colon = inside.find(':');
    parts.push_back(inside.substr(0, colon));
    if (colon == std::string_view::npos) break;
  }
  if (parts.size() > 3) fail();
  std::array<std::optional<uint32_t>, 3> numbers;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    numbers[i] = InfraIndex(parts[i]);
    if (!numbers[i]) fail();
  }
  slice.begin = numbers[0];
  slice.end = numbers[1];
  slice.step = numbers[2].value_or(1);
  if (slice.step == 0) fail();
  if (parts.size() == 1 && numbers[0]) slice.end = *numbers[0] + 1;
  return slice;
}

class InfraReader {
 public:
  InfraReader(const JsonDocument& document, Remarks& remarks)
      : document_(document), remarks_(remarks) {}

  InfraGraph Read() {
    JsonReader root = document_.Root();
    if (!root.IsObject()) root.Expected(kInfraExpected);
    if (root.Has("infrastructure")) root = root.At("infrastructure");
    if (!root.IsObject()) root.Expected(kInfraExpected);
    Understand(root,
               {"name", "description", "devices", "links", "instances", "edges", "connections"});
    InfraGraph graph;
    graph.place = root.place();
    if (IsGiven(root, "name")) graph.name = root.At("name").String();
    graph.words = InfraWords(TextAt(root, "description"));
    for (const JsonReader& device : ListAt(root, "devices"))
      graph.devices.push_back(ReadDevice(device));
    graph.links = ReadLinks(root);
    for (const JsonReader& instance : ListAt(root, "instances"))
      graph.instances.push_back(ReadInstance(instance));
    graph.edges = ReadEdges(root, graph.links, "instance");
    ReadConnections(root, graph.links, &graph.edges);
    CountByConnections(root, "instances", graph.edges, &graph.instances);
    return graph;
  }

 private:
  static bool IsGiven(const JsonReader& reader, const std::string& key) {
    return reader.Has(key) && !reader.At(key).value().is_null();
  }
  static std::vector<JsonReader> ListAt(const JsonReader& reader, const std::string& key) {
    return IsGiven(reader, key) ? reader.At(key).Elements() : std::vector<JsonReader>();
  }
  // A description, which says nothing that must be there.
  static std::string TextAt(const JsonReader& reader, const std::string& key) {
    return reader.Has(key) && reader.At(key).IsString() ? reader.At(key).String() : std::string();
  }
  static std::string NameOf(const JsonReader& reader) {
    std::string name = reader.At("name").String();
    if (name.empty()) reader.At("name").Expected("a name");
    return name;
  }
  static uint32_t CountOf(const JsonReader& reader) {
    if (!IsGiven(reader, "count")) return 1;
    return static_cast<uint32_t>(reader.At("count").Integer(0, kMostInfraCount));
  }

  void Understand(const JsonReader& reader, const std::vector<std::string>& keys) {
    if (!reader.IsObject()) reader.Expected("an object");
    for (const auto& [key, value] : reader.Members())
      if (std::find(keys.begin(), keys.end(), key) == keys.end() && unknown_.insert(key).second)
        remarks_.Add("not understood, left out", Quoted(key));
  }

  InfraDevice ReadDevice(const JsonReader& reader) {
    Understand(reader, {"name", "description", "components", "links", "edges", "connections"});
    InfraDevice device;
    device.name = NameOf(reader);
    device.text = InfraText(device.name + " " + TextAt(reader, "description"));
    device.place = reader.place();
    for (const JsonReader& component : ListAt(reader, "components"))
      device.components.push_back(ReadComponent(component));
    device.links = ReadLinks(reader);
    device.edges = ReadEdges(reader, device.links, "device");
    ReadConnections(reader, device.links, &device.edges);
    CountByConnections(reader, "components", device.edges, &device.components);
    return device;
  }

  InfraComponent ReadComponent(const JsonReader& reader) {
    static const std::vector<std::string> kChoices = {"cpu",  "xpu",    "nic",    "memory",
                                                      "port", "switch", "custom", "device"};
    std::vector<std::string> keys = {"name", "description", "count", "choice", "type", "external"};
    keys.insert(keys.end(), kChoices.begin(), kChoices.end());
    Understand(reader, keys);
    InfraComponent component;
    component.name = NameOf(reader);
    component.description = TextAt(reader, "description");
    component.words = InfraWords(component.description);
    component.place = reader.place();
    component.count = CountOf(reader);
    const JsonReader choice =
        reader.At(IsGiven(reader, "choice") || !IsGiven(reader, "type") ? "choice" : "type");
    component.choice = choice.String() == "npu" ? InfraChoice::kXpu
                                                : static_cast<InfraChoice>(choice.Choice(kChoices));
    component.text = component.name + " " + component.description;
    if (IsGiven(reader, "custom")) component.text += " " + TextAt(reader.At("custom"), "type");
    component.text = InfraText(component.text);
    return component;
  }

  std::vector<InfraLink> ReadLinks(const JsonReader& owner) {
    std::vector<InfraLink> links;
    for (const JsonReader& reader : ListAt(owner, "links")) {
      Understand(reader, {"name", "description", "physical", "bandwidth", "latency"});
      InfraLink link;
      link.name = NameOf(reader);
      const std::string description = TextAt(reader, "description");
      link.text = InfraText(link.name + " " + description);
      link.words = InfraWords(description);
      link.place = reader.place();
      ReadFigures(IsGiven(reader, "physical") ? reader.At("physical") : reader, &link);
      links.push_back(std::move(link));
    }
    return links;
  }

  void ReadFigures(const JsonReader& reader, InfraLink* link) {
    if (!reader.IsObject()) reader.Expected("an object");
    constexpr double kLeast = 1e-6;
    constexpr double kMost = 1e15;
    if (IsGiven(reader, "bandwidth")) {
      if (const auto given = UnitIn(reader.At("bandwidth"))) {
        const auto& [unit, value] = *given;
        const double number = value.Number(kLeast, kMost);
        if (unit == "gigabitspersecond")
          link->bandwidth = BytesPerSecond(number * 1e9 / 8);
        else if (unit == "gigabytespersecond")
          link->bandwidth = BytesPerSecond(number * 1e9);
        else if (unit == "gigatransferspersecond")
          link->gigatransfers = number;
        else
          remarks_.Add("a bandwidth in a unit that is not understood, left out", Quoted(unit));
      }
    }
    if (!IsGiven(reader, "latency")) return;
    const auto given = UnitIn(reader.At("latency"));
    if (!given) return;
    const auto& [unit, value] = *given;
    const double number = value.Number(0, kMost);
    if (unit == "ms" || unit == "us" || unit == "ns") {
      const double second = unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1e9;
      constexpr double kLongest = 100;  // seconds
      if (number / second > kLongest) value.Expected("at most 100 seconds");
      link->latency = Seconds(number / second);
    } else {
      remarks_.Add("a latency in a unit that is not understood, left out", Quoted(unit));
    }
  }

  // The one value that it chooses, or that is there.
  static std::optional<std::pair<std::string, JsonReader>> UnitIn(const JsonReader& reader) {
    if (!reader.IsObject()) reader.Expected("an object such as {\"gigabits_per_second\": 400}");
    const std::string chosen =
        IsGiven(reader, "choice") ? reader.At("choice").String() : std::string();
    for (const auto& [key, value] : reader.Members()) {
      if (key == "choice" || value.value().is_null()) continue;
      if (chosen.empty() || key == chosen) return std::pair(WithoutUnderscores(key), value);
    }
    return std::nullopt;
  }

  InfraInstance ReadInstance(const JsonReader& reader) {
    Understand(reader, {"name", "description", "device", "count"});
    return {.name = NameOf(reader),
            .device = reader.At("device").String(),
            .place = reader.place(),
            .count = CountOf(reader)};
  }

  std::vector<InfraEdge> ReadEdges(const JsonReader& owner, const std::vector<InfraLink>& links,
                                   const std::string& outer) {
    std::map<std::string, uint32_t, std::less<>> by_name;
    for (uint32_t i = 0; i < links.size(); ++i) by_name.emplace(links[i].name, i);
    std::vector<InfraEdge> edges;
    for (const JsonReader& reader : ListAt(owner, "edges")) {
      Understand(reader, {"ep1", "ep2", "scheme", "many2many", "link"});
      InfraEdge edge;
      edge.place = reader.place();
      edge.from = ReadEnd(reader.At("ep1"), outer);
      edge.to = ReadEnd(reader.At("ep2"), outer);
      edge.is_many_to_many = IsManyToMany(reader);
      const std::string name = reader.At("link").String();
      const auto link = by_name.find(name);
      if (link == by_name.end()) {
        std::vector<std::string> names;
        for (const InfraLink& known : links) names.push_back(known.name);
        reader.At("link").Fail(fmt::format("there is no link {} beside this edge{}", Quoted(name),
                                           KnownNames(Printable(name), names)));
      }
      edge.link = link->second;
      edges.push_back(std::move(edge));
    }
    return edges;
  }

  // Of the schema before: "xpu.0.pcie.nic.1", "host.0.nic.0.eth.switch.0.port.3". Names have an
  // index behind them, but for the link's.
  static void ReadConnections(const JsonReader& owner, const std::vector<InfraLink>& links,
                              std::vector<InfraEdge>* edges) {
    for (const JsonReader& reader : ListAt(owner, "connections")) {
      InfraEdge edge;
      edge.place = edge.from.place = edge.to.place = reader.place();
      InfraEnd* end = &edge.from;
      std::optional<uint32_t> link;
      const std::string text = reader.String();
      std::vector<std::string> parts;
      for (size_t begin = 0; begin <= text.size();) {
        const size_t dot = std::min(text.find('.', begin), text.size());
        parts.push_back(text.substr(begin, dot - begin));
        begin = dot + 1;
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::optional<uint32_t> index =
            i + 1 < parts.size() ? InfraIndex(parts[i + 1]) : std::nullopt;
        if (index && !parts[i].empty()) {
          end->steps.push_back({.name = parts[i], .begin = index, .end = *index + 1, .step = 1});
          ++i;
          continue;
        }
        for (uint32_t at = 0; at < links.size() && !link; ++at)
          if (links[at].name == parts[i]) link = at;
        if (!link || end == &edge.to)
          reader.Expected("a connection over a link that is here, such as \"xpu.0.pcie.nic.1\"");
        end = &edge.to;
      }
      if (edge.from.steps.empty() || edge.to.steps.empty())
        reader.Expected("a connection between two, such as \"xpu.0.pcie.nic.1\"");
      edge.link = *link;
      edges->push_back(std::move(edge));
    }
  }
  // Then counts could be left to the connections.
  template <typename Counted>
  static void CountByConnections(const JsonReader& owner, const char* key,
                                 const std::vector<InfraEdge>& edges, std::vector<Counted>* all) {
    if (ListAt(owner, "connections").empty()) return;
    const std::vector<JsonReader> given = ListAt(owner, key);
    std::map<std::string, uint32_t, std::less<>> most;
    for (const InfraEdge& edge : edges) {
      for (const InfraEnd* end : {&edge.from, &edge.to}) {
        uint32_t& count = most[end->steps.front().name];
        count = std::max(count, end->steps.front().end.value_or(1));
        // All are joined by something, two at most by each.
        if (count > 2 * edges.size())
          owner.At("connections")
              .Fail(fmt::format("there is a {} numbered {}, but no more than {} connections",
                                Quoted(end->steps.front().name), count - 1, edges.size()));
      }
    }
    for (size_t i = 0; i < all->size(); ++i) {
      const auto found = most.find((*all)[i].name);
      if (found != most.end() && !IsGiven(given[i], "count")) (*all)[i].count = found->second;
    }
  }

  bool IsManyToMany(const JsonReader& reader) {
    if (IsGiven(reader, "scheme")) {
      const JsonReader scheme = reader.At("scheme");
      const std::string name = scheme.String();
      if (name != "one2one" && name != "many2many") scheme.Expected("\"one2one\" or \"many2many\"");
      return name == "many2many";
    }
    if (IsGiven(reader, "many2many")) return reader.At("many2many").Bool();
    remarks_.Add("an edge without scheme, taken as one2one", reader.place().pointer);
    return false;
  }

  static InfraEnd ReadEnd(const JsonReader& reader, const std::string& outer) {
    if (!reader.IsObject()) reader.Expected("an object with \"component\"");
    InfraEnd end;
    end.place = reader.place();
    if (outer == "instance" || IsGiven(reader, outer)) AddSteps(reader.At(outer), &end);
    AddSteps(reader.At("component"), &end);
    return end;
  }
  static void AddSteps(const JsonReader& reader, InfraEnd* end) {
    const std::string text = reader.String();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t dot = std::min(text.find('.', begin), text.size());
      end->steps.push_back(
          ParseInfraSlice(std::string_view(text).substr(begin, dot - begin), reader));
      begin = dot + 1;
    }
  }

  const JsonDocument& document_;
  Remarks& remarks_;
  std::set<std::string> unknown_;  // keys
};

}  // namespace

InfraGraph ReadInfraGraph(std::string_view text, const std::string& file, Remarks& remarks) {
  RefuseNonText(text, file, kInfraExpected, Escapes::kRefused);
  const bool is_json = text[text.find_first_not_of(" \t\r\n")] == '{';
  const JsonDocument document = is_json ? JsonDocument::FromText(text, file) : ReadYaml(text, file);
  return InfraReader(document, remarks).Read();
}

std::string InfraText(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace rehearse
