#include "topology/files/cluster_export.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "topology/fabrics/structure.h"
#include "topology/files/cluster_file.h"
#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"
#include "topology/files/graph_file.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// ---- Vertices and links -------------------------------------------------------------------------

Json Vertices(const Cluster& cluster, const std::vector<Json>& devices, const Json& usual) {
  Json vertices = Json::array();
  uint32_t rank = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const Vertex& vertex = cluster.VertexAt(id);
    Json json = VertexToJson(vertex);
    if (vertex.kind == VertexKind::kDevice) {
      const Json& device = devices[cluster.SpecOf(rank++)];
      if (device != usual) json["device"] = device;
    }
    vertices.push_back(std::move(json));
  }
  return vertices;
}

// A link of the graph, which a cluster without structure has now, and one with it had when drawn.
struct GraphLink {
  std::string from;
  std::string to;
  ClusterLink link;
  bool is_down = false;
};

// `whole` is the cluster before links were taken away.
std::vector<GraphLink> LinksOf(const Cluster& cluster, const Cluster& whole) {
  const ClusterStructure* structure = cluster.structure().get();
  std::vector<GraphLink> links;
  links.reserve(whole.link_count());
  for (uint32_t i = 0; i < whole.link_count(); ++i) {
    const uint32_t now = &whole == &cluster ? i : structure->LinkNow(i);
    const bool is_down = now == ClusterStructure::kGone;
    links.push_back({whole.VertexAt(whole.SourceOf(i)).name, whole.VertexAt(whole.TargetOf(i)).name,
                     is_down ? whole.Link(i) : cluster.Link(now), is_down});
  }
  return links;
}

bool AreToAndFro(const GraphLink& x, const GraphLink& y) {
  return x.from == y.to && x.to == y.from && x.is_down == y.is_down && x.link.kind == y.link.kind &&
         x.link.bandwidth == y.link.bandwidth && x.link.latency == y.link.latency &&
         x.link.efficiency == y.link.efficiency;
}

// The links, and the edits that take away those that are down.
std::pair<Json, Json> Links(const std::vector<GraphLink>& all) {
  Json links = Json::array();
  Json edits = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    const GraphLink& link = all[i];
    const bool both_ways = i + 1 < all.size() && AreToAndFro(link, all[i + 1]);
    Json json;
    if (both_ways) {
      json["between"] = {link.from, link.to};
      ++i;
    } else {
      json["from"] = link.from;
      json["to"] = link.to;
    }
    WriteLink(link.link, &json);
    links.push_back(std::move(json));
    if (!link.is_down) continue;
    Json edit = {{"links", link.from + "->" + link.to}};
    if (!both_ways) edit["one_way"] = true;
    edit["down"] = true;
    edits.push_back(std::move(edit));
  }
  return {std::move(links), std::move(edits)};
}

void RefuseMeasured(const Cluster& cluster) {
  bool is_measured = cluster.measured_collectives() != nullptr;
  for (const DeviceSpec& spec : cluster.device_specs())
    is_measured = is_measured || spec.measured != nullptr;
  if (is_measured)
    throw Error(
        fmt::format("cluster \"{}\" has times that a calibration measured, which a graph cannot "
                    "hold; write it without them, and name the calibration beside it",
                    cluster.name()));
}

// The cluster that one with links down was before.
std::unique_ptr<Cluster> WholeOf(const std::string& routed_as) {
  if (!routed_as.starts_with('{')) return ReadClusterArgument(routed_as);
  return ReadCluster(JsonDocument::FromText(routed_as, "routed_as").Root());
}

// On one line, with blanks.
std::string OneLine(const Json& json) {
  std::string text;
  const auto add = [&](const std::string& piece) { text += (text.empty() ? "" : ", ") + piece; };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add(Json(key).dump() + ": " + OneLine(value));
    return "{" + text + "}";
  }
  if (json.is_array()) {
    for (const Json& value : json) add(OneLine(value));
    return "[" + text + "]";
  }
  return json.dump();
}

// With lists one element a line, and what is in a node or a fabric one key a line.
std::string Lines(const Json& object, const std::string& indent) {
  std::string text = "{";
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}\n{}  {}: ", text.size() > 1 ? "," : "", indent, Json(key).dump());
    if (value.is_object() && indent.empty() && (key == "node" || key == "fabric")) {
      text += Lines(value, "  ");
      continue;
    }
    if (!value.is_array() || value.empty() || !indent.empty()) {
      text += OneLine(value);
      continue;
    }
    text += "[";
    for (size_t i = 0; i < value.size(); ++i)
      text += fmt::format("{}\n    {}", i > 0 ? "," : "", OneLine(value[i]));
    text += "]";
  }
  return fmt::format("{}\n{}}}", text, indent);
}

bool AreSame(const ClusterLink& x, const ClusterLink& y) {
  return x.kind == y.kind && x.bandwidth == y.bandwidth && x.latency == y.latency &&
         x.efficiency == y.efficiency;
}

bool AreSame(const Cluster& a, const Cluster& b) {
  if (!DifferenceInWiring(*a.wiring(), *b.wiring()).empty()) return false;
  for (uint32_t i = 0; i < a.link_count(); ++i)
    if (!AreSame(a.Link(i), b.Link(i))) return false;
  if (a.device_specs().size() != b.device_specs().size()) return false;
  for (size_t i = 0; i < a.device_specs().size(); ++i)
    if (DeviceToJson(a.device_specs()[i]) != DeviceToJson(b.device_specs()[i])) return false;
  return a.notes() == b.notes() && a.network_plugin().name == b.network_plugin().name &&
         a.step_overhead() == b.step_overhead() && HasFabric(a) == HasFabric(b);
}

}  // namespace

bool AreToAndFro(const Cluster& cluster, uint32_t there, uint32_t back) {
  const ClusterLink x = cluster.Link(there);
  const ClusterLink y = cluster.Link(back);
  return cluster.SourceOf(there) == cluster.TargetOf(back) &&
         cluster.TargetOf(there) == cluster.SourceOf(back) && x.kind == y.kind &&
         x.bandwidth == y.bandwidth && x.latency == y.latency && x.efficiency == y.efficiency;
}

bool HasFabric(const Cluster& cluster) {
  return cluster.structure() != nullptr && cluster.structure()->fabric.has_value();
}

nlohmann::ordered_json ClusterToJson(const Cluster& cluster, const std::string& routed_as) {
  CHECK_GT(cluster.device_count(), 0u);
  const bool is_routed = HasFabric(cluster) && !routed_as.empty();
  std::unique_ptr<Cluster> whole;
  if (is_routed && !cluster.structure()->link_now.empty()) whole = WholeOf(routed_as);
  std::vector<Json> devices;
  for (const DeviceSpec& spec : cluster.device_specs()) devices.push_back(DeviceToJson(spec));
  Json drawn;
  GraphFields().Write({.name = cluster.name(),
                       .notes = cluster.notes(),
                       .step_overhead = cluster.step_overhead(),
                       .collective_overhead = cluster.collective_overhead(),
                       .channel_overhead = cluster.channel_overhead(),
                       .network_plugin = cluster.network_plugin().name},
                      &drawn);
  drawn["device"] = devices[cluster.SpecOf(0)];
  drawn["vertices"] = Vertices(cluster, devices, drawn["device"]);
  auto [links, edits] = Links(LinksOf(cluster, whole ? *whole : cluster));
  drawn["links"] = std::move(links);
  if (!edits.empty()) drawn["edits"] = std::move(edits);
  if (is_routed)
    drawn["routed_as"] = routed_as.starts_with('{') ? Json::parse(routed_as) : Json(routed_as);
  if (!cluster.rings().empty()) drawn["rings"] = cluster.rings();
  Json json;
  for (const JsonKey& row : GraphFields().shape().keys)
    if (drawn.contains(row.name)) json[row.name] = std::move(drawn[row.name]);
  return json;
}

std::string RoutedAs(const std::string& cluster) {
  if (!IsClusterFile(cluster)) return cluster;
  nlohmann::json object = ClusterObjectOf(cluster);
  if (object.contains("vertices")) {
    if (!object.contains("routed_as")) return "";
    const nlohmann::json& said = object["routed_as"];
    return said.is_string() ? said.get<std::string>() : said.dump();
  }
  for (const JsonKey& key : MeasuredAndEditedKeys()) object.erase(key.name);
  return object.dump();
}

std::string ClusterToText(const Cluster& cluster, const std::string& routed_as) {
  RefuseMeasured(cluster);
  return Lines(ClusterToJson(cluster, routed_as), "") + "\n";
}

std::optional<std::string> CompactText(const Cluster& cluster, const std::string& given) {
  const JsonDocument document = ClusterDocument(given);
  const std::optional<Json> form = AsCompactForm(document.Root());
  if (!form) return std::nullopt;
  std::string text = Lines(*form, "") + "\n";
  const auto comes_back = [&] {
    try {
      return AreSame(*ReadCluster(JsonDocument::FromText(text, given).Root()), cluster);
    } catch (const Error&) {
      return false;  // a node or a fabric that the compact form has no words for
    }
  };
  if (!comes_back()) return std::nullopt;
  return text;
}

}  // namespace rehearse
