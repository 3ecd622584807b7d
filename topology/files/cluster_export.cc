#include "topology/files/cluster_export.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/fabrics/structure.h"
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

Json Links(const Cluster& cluster) {
  Json links = Json::array();
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const ClusterLink& link = cluster.Link(i);
    const std::string& from = cluster.VertexAt(cluster.SourceOf(i)).name;
    const std::string& to = cluster.VertexAt(cluster.TargetOf(i)).name;
    Json json;
    if (i + 1 < cluster.link_count() && AreToAndFro(cluster, i, i + 1)) {
      json["between"] = {from, to};
      ++i;
    } else {
      json["from"] = from;
      json["to"] = to;
    }
    WriteLink(link, &json);
    links.push_back(std::move(json));
  }
  return links;
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

nlohmann::ordered_json ClusterToJson(const Cluster& cluster, const std::string& preset) {
  CHECK_GT(cluster.device_count(), 0u);
  std::vector<Json> devices;
  for (const DeviceSpec& spec : cluster.device_specs()) devices.push_back(DeviceToJson(spec));
  Json drawn;
  GraphFields().Write({.name = cluster.name(),
                       .routed_as = HasFabric(cluster) ? preset : "",
                       .notes = cluster.notes(),
                       .step_overhead = cluster.step_overhead(),
                       .collective_overhead = cluster.collective_overhead(),
                       .channel_overhead = cluster.channel_overhead(),
                       .network_plugin = cluster.network_plugin().name},
                      &drawn);
  drawn["device"] = devices[cluster.SpecOf(0)];
  drawn["vertices"] = Vertices(cluster, devices, drawn["device"]);
  drawn["links"] = Links(cluster);
  if (!cluster.rings().empty()) drawn["rings"] = cluster.rings();
  Json json;
  for (const JsonKey& row : GraphFields().shape().keys)
    if (drawn.contains(row.name)) json[row.name] = std::move(drawn[row.name]);
  return json;
}

std::string ClusterToText(const Cluster& cluster, const std::string& preset) {
  RefuseMeasured(cluster);
  const Json json = ClusterToJson(cluster, preset);
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}\n  {}: ", text.size() > 1 ? "," : "", Json(key).dump());
    if (!value.is_array()) {
      text += OneLine(value);
      continue;
    }
    text += "[";
    for (size_t i = 0; i < value.size(); ++i)
      text += fmt::format("{}\n    {}", i > 0 ? "," : "", OneLine(value[i]));
    text += "]";
  }
  return text + "\n}\n";
}

}  // namespace rehearse
