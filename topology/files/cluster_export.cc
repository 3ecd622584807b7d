#include "topology/files/cluster_export.h"

#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "topology/devices/attention_model.h"
#include "topology/devices/gemm_model.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// ---- Quantities ---------------------------------------------------------------------------------

struct Unit {
  std::string_view name;
  double size;      // in SI
  double fraction;  // or its reciprocal, if that is the exact one
};

// The shortest text that `parse` reads as exactly this quantity.
template <typename Parse>
std::string Shortest(double value, std::span<const Unit> units, Parse parse) {
  std::string best;
  for (const Unit& unit : units) {
    const double number = value / unit.size * unit.fraction;
    if (value != 0 && !(number > 0)) continue;
    // 15 digits leave out the rounding error of the line above; 17 are always enough for the SI
    // unit.
    for (const std::string& digits : {fmt::format("{:.15g}", number), fmt::format("{}", number)}) {
      const std::string text = fmt::format("{}{}", digits, unit.name);
      if (!best.empty() && text.size() >= best.size()) continue;
      if (parse(text).value() == value) best = text;
    }
  }
  CHECK(!best.empty());
  return best;
}

constexpr double kKibi = 1024;
constexpr double kMebi = 1024 * kKibi;
constexpr double kGibi = 1024 * kMebi;
constexpr double kTebi = 1024 * kGibi;

std::string Text(BytesPerSecond bandwidth) {
  static constexpr Unit kUnits[] = {{"Bps", 1, 1},       {"GBps", 1e9, 1},   {"MBps", 1e6, 1},
                                    {"kBps", 1e3, 1},    {"TBps", 1e12, 1},  {"KiBps", kKibi, 1},
                                    {"MiBps", kMebi, 1}, {"GiBps", kGibi, 1}};
  return Shortest(bandwidth.value(), kUnits, ParseBandwidth);
}

std::string Text(Seconds duration) {
  static constexpr Unit kUnits[] = {
      {"us", 1, 1e6}, {"s", 1, 1}, {"ms", 1, 1e3}, {"ns", 1, 1e9}, {"ps", 1, 1e12}};
  if (duration == Seconds(0)) return "0us";
  return Shortest(duration.value(), kUnits, ParseDuration);
}

std::string Text(Bytes size) {
  static constexpr Unit kUnits[] = {{"B", 1, 1},       {"GiB", kGibi, 1}, {"MiB", kMebi, 1},
                                    {"KiB", kKibi, 1}, {"TiB", kTebi, 1}, {"GB", 1e9, 1},
                                    {"MB", 1e6, 1}};
  return Shortest(size.value(), kUnits, ParseSize);
}

std::string Text(FlopsPerSecond rate) {
  static constexpr Unit kUnits[] = {
      {"FLOPS", 1, 1}, {"TFLOPS", 1e12, 1}, {"GFLOPS", 1e9, 1}, {"PFLOPS", 1e15, 1}};
  return Shortest(rate.value(), kUnits, ParseFlopRate);
}

// ---- Devices ------------------------------------------------------------------------------------

Json ToJson(const GemmModel& model) {
  Json json;
  json["library"] = Name(model.library);
  json["multiprocessors"] = model.multiprocessors;
  if (model.sustained != 1) json["sustained"] = model.sustained;
  json["few_waves"] = model.few_waves;
  json["many_waves"] = model.many_waves;
  if (model.launch > Seconds(0)) json["launch"] = Text(model.launch);
  if (model.cache > Bytes(0)) json["cache"] = Text(model.cache);
  return json;
}

Json ToJson(const AttentionPass& pass) {
  Json json;
  json["rates"] = pass.rates;
  json["causal"] = pass.causal;
  json["setup"] = pass.setup;
  json["tail"] = pass.tail;
  return json;
}

Json ToJson(const AttentionModel& model) {
  Json json;
  json["multiprocessors"] = model.multiprocessors;
  if (model.launch > Seconds(0)) json["launch"] = Text(model.launch);
  for (const AttentionRates& rates : model.kernels) {
    Json kernel;
    kernel["kernel"] = Name(rates.kernel);
    kernel["rows"] = rates.rows;
    kernel["forward"] = ToJson(rates.forward);
    kernel["backward"] = ToJson(rates.backward);
    json["kernels"].push_back(std::move(kernel));
  }
  return json;
}

Json DeviceObject(const DeviceSpec& device) {
  Json json;
  json["name"] = device.name;
  json["description"] = device.description;
  if (device.compute_capability > 0) json["compute_capability"] = device.compute_capability;
  const auto add_rate = [&](const char* key, FlopsPerSecond rate) {
    if (rate > FlopsPerSecond(0)) json[key] = Text(rate);
  };
  add_rate("matrix_peak_16", device.matrix_peak_16);
  add_rate("matrix_peak_8", device.matrix_peak_8);
  add_rate("matrix_peak_4", device.matrix_peak_4);
  add_rate("matrix_peak_32", device.matrix_peak_32);
  add_rate("vector_peak_32", device.vector_peak_32);
  add_rate("vector_peak_64", device.vector_peak_64);
  if (device.memory > Bytes(0)) json["memory"] = Text(device.memory);
  if (device.memory_bandwidth > BytesPerSecond(0))
    json["memory_bandwidth"] = Text(device.memory_bandwidth);
  json["memory_efficiency"] = device.memory_efficiency;
  if (device.cache > Bytes(0)) json["cache"] = Text(device.cache);
  if (device.cache_bandwidth > BytesPerSecond(0) &&
      device.cache_bandwidth != device.memory_bandwidth)
    json["cache_bandwidth"] = Text(device.cache_bandwidth);
  if (device.strided_element > Seconds(0)) json["strided_element"] = Text(device.strided_element);
  json["gemm_efficiency"] = device.gemm_efficiency;
  if (device.gemm_scale != 1) json["gemm_scale"] = device.gemm_scale;
  if (device.gemm_model) json["gemm_model"] = ToJson(*device.gemm_model);
  if (device.gemm_model_8) json["gemm_model_8"] = ToJson(*device.gemm_model_8);
  if (device.attention_model) json["attention_model"] = ToJson(*device.attention_model);
  json["attention_forward_efficiency"] = device.attention_forward_efficiency;
  json["attention_backward_efficiency"] = device.attention_backward_efficiency;
  json["launch_overhead"] = Text(device.launch_overhead);
  if (device.slowdown.Any()) json["slowdown"] = ToJson(device.slowdown);
  if (device.host_cores > 0) json["host_cores"] = device.host_cores;
  for (const GemmPoint& point : device.gemm_points)
    json["gemm_points"].push_back({{"mode", Name(point.mode)},
                                   {"m", point.m},
                                   {"n", point.n},
                                   {"k", point.k},
                                   {"efficiency", point.efficiency}});
  for (const auto& [figure, source] : device.sources) json["sources"][figure] = source;
  return json;
}

// The name if this is a known device, else everything about it.
Json DeviceToJson(const DeviceSpec& device) {
  Json object = DeviceObject(device);
  for (const DeviceSpec& known : KnownDevices())
    if (known.name == device.name && DeviceObject(known) == object) return device.name;
  return object;
}

// ---- Vertices and links -------------------------------------------------------------------------

Json Vertices(const Cluster& cluster, const std::vector<Json>& devices, const Json& usual) {
  Json vertices = Json::array();
  uint32_t rank = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const Vertex& vertex = cluster.VertexAt(id);
    Json json;
    json["name"] = vertex.name;
    json["kind"] = Name(vertex.kind);
    if (!vertex.node.empty()) json["node"] = vertex.node;
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
    json["kind"] = Name(link.kind);
    json["bandwidth"] = Text(link.bandwidth);
    json["latency"] = Text(link.latency);
    if (link.efficiency != 1) json["efficiency"] = link.efficiency;
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

bool IsKnownBySpec(const DeviceSpec& device) { return DeviceToJson(device).is_string(); }

bool HasFabric(const Cluster& cluster) {
  return cluster.structure() != nullptr && cluster.structure()->fabric.has_value();
}

std::string ExactText(BytesPerSecond bandwidth) { return Text(bandwidth); }
std::string ExactText(Seconds duration) { return Text(duration); }

nlohmann::ordered_json ToJson(const Slowdown& slowdown) {
  Json json = {{"gemm", slowdown.gemm},
               {"attention", slowdown.attention},
               {"memory", slowdown.memory},
               {"communication", slowdown.communication}};
  if (const auto& waves = slowdown.waves) {
    json["waves"] = {{"multiprocessors", waves->multiprocessors},
                     {"taken", waves->taken},
                     {"tile", {waves->tile_rows, waves->tile_columns}},
                     {"persistent", waves->is_persistent}};
  }
  return json;
}

nlohmann::ordered_json ClusterToJson(const Cluster& cluster, const std::string& preset) {
  CHECK_GT(cluster.device_count(), 0u);
  std::vector<Json> devices;
  for (const DeviceSpec& spec : cluster.device_specs()) devices.push_back(DeviceToJson(spec));
  Json json;
  json["name"] = cluster.name();
  json["device"] = devices[cluster.SpecOf(0)];
  if (!preset.empty() && HasFabric(cluster)) json["routed_as"] = preset;
  if (!cluster.notes().empty()) json["notes"] = cluster.notes();
  json["vertices"] = Vertices(cluster, devices, json["device"]);
  json["links"] = Links(cluster);
  json["step_overhead"] = Text(cluster.step_overhead());
  if (cluster.collective_overhead() > Seconds(0))
    json["collective_overhead"] = Text(cluster.collective_overhead());
  if (cluster.channel_overhead() > Seconds(0))
    json["channel_overhead"] = Text(cluster.channel_overhead());
  if (cluster.network_plugin().name != "ib") json["network_plugin"] = cluster.network_plugin().name;
  if (!cluster.rings().empty()) json["rings"] = cluster.rings();
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
