#include "topology/files/graph_file.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/cluster/builder.h"

namespace rehearse {
namespace {

constexpr std::array kVertexKinds = {VertexKind::kDevice,     VertexKind::kNic,
                                     VertexKind::kPcieSwitch, VertexKind::kSocket,
                                     VertexKind::kNvSwitch,   VertexKind::kSwitch};
constexpr std::array kLinkKinds = {LinkKind::kNvLink, LinkKind::kXgmi,    LinkKind::kPcie,
                                   LinkKind::kSocket, LinkKind::kNetwork, LinkKind::kMemory};

template <typename Kinds>
auto ReadKind(const JsonReader& reader, const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto kind : kinds) names.emplace_back(Name(kind));
  return kinds[reader.Choice(names)];
}

// Above 0, at most 1; 1 when it is not there.
double ReadEfficiency(const JsonReader& object, const std::string& key) {
  if (!object.Has(key)) return 1;
  const JsonReader reader = object.At(key);
  const double efficiency = reader.Number(0, 1);
  if (efficiency == 0) reader.Expected("a number above 0 and at most 1");
  return efficiency;
}

std::string ReadName(const JsonReader& reader) {
  std::string name = reader.String();
  if (name.empty()) reader.Expected("a name");
  return name;
}

GemmPoint ReadGemmPoint(const JsonReader& reader) {
  reader.AllowKeys({"mode", "m", "n", "k", "efficiency"});
  constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
  constexpr int64_t kLargest = int64_t{1} << 40;
  const auto size = [&](const std::string& key) {
    return static_cast<uint64_t>(reader.At(key).Integer(1, kLargest));
  };
  return {.mode = ReadKind(reader.At("mode"), kModes),
          .m = size("m"),
          .n = size("n"),
          .k = size("k"),
          .efficiency = ReadEfficiency(reader, "efficiency")};
}

}  // namespace

namespace {

Waves ReadWaves(const JsonReader& reader) {
  reader.AllowKeys({"multiprocessors", "taken", "tile"});
  const auto count = [](const JsonReader& value, uint32_t least) {
    constexpr int64_t kMost = 1 << 16;
    return static_cast<uint32_t>(value.Integer(least, kMost));
  };
  Waves waves;
  waves.multiprocessors = count(reader.At("multiprocessors"), 1);
  waves.taken = count(reader.At("taken"), 0);
  if (waves.taken >= waves.multiprocessors)
    reader.At("taken").Expected(fmt::format("fewer than {}", waves.multiprocessors));
  const std::vector<JsonReader> tile = reader.At("tile").Elements();
  if (tile.size() != 2) reader.At("tile").Expected("[rows, columns]");
  waves.tile_rows = count(tile[0], 1);
  waves.tile_columns = count(tile[1], 1);
  return waves;
}

}  // namespace

Slowdown ReadSlowdown(const JsonReader& reader) {
  reader.AllowKeys({"gemm", "attention", "memory", "communication", "waves"});
  const auto factor = [&](const char* key) {
    constexpr double kLargest = 1000;
    return reader.Has(key) ? reader.At(key).Number(0, kLargest) : 0.0;
  };
  Slowdown slowdown;
  slowdown.gemm = factor("gemm");
  slowdown.attention = factor("attention");
  slowdown.memory = factor("memory");
  slowdown.communication = factor("communication");
  if (reader.Has("waves")) slowdown.waves = ReadWaves(reader.At("waves"));
  return slowdown;
}

namespace {

DeviceSpec ReadDeviceObject(const JsonReader& reader) {
  reader.AllowKeys({"name", "description", "compute_capability", "matrix_peak_16", "matrix_peak_32",
                    "vector_peak_32", "vector_peak_64", "memory", "memory_bandwidth",
                    "memory_efficiency", "gemm_efficiency", "gemm_scale", "gemm_points",
                    "attention_forward_efficiency", "attention_backward_efficiency",
                    "launch_overhead", "slowdown", "host_cores", "sources"});
  const auto optional_rate = [&](const std::string& key) {
    return reader.Has(key) ? reader.At(key).FlopRate() : FlopsPerSecond(0);
  };
  DeviceSpec device;
  device.name = ReadName(reader.At("name"));
  device.description = reader.Has("description") ? reader.At("description").String() : device.name;
  if (reader.Has("compute_capability")) {
    device.compute_capability =
        static_cast<uint32_t>(reader.At("compute_capability").Integer(0, 1000));
  }
  device.matrix_peak_16 = reader.At("matrix_peak_16").FlopRate();
  device.matrix_peak_32 = optional_rate("matrix_peak_32");
  device.vector_peak_32 = optional_rate("vector_peak_32");
  device.vector_peak_64 = optional_rate("vector_peak_64");
  device.memory = reader.At("memory").Size();
  device.memory_bandwidth = reader.At("memory_bandwidth").Bandwidth();
  device.memory_efficiency = ReadEfficiency(reader, "memory_efficiency");
  device.gemm_efficiency = ReadEfficiency(reader, "gemm_efficiency");
  if (reader.Has("gemm_scale")) {
    constexpr double kLargest = 1000;
    device.gemm_scale = reader.At("gemm_scale").Number(0, kLargest);
    if (device.gemm_scale == 0) reader.At("gemm_scale").Expected("a number above 0");
  }
  if (reader.Has("gemm_points"))
    for (const JsonReader& point : reader.At("gemm_points").Elements())
      device.gemm_points.push_back(ReadGemmPoint(point));
  device.attention_forward_efficiency = ReadEfficiency(reader, "attention_forward_efficiency");
  device.attention_backward_efficiency = ReadEfficiency(reader, "attention_backward_efficiency");
  if (reader.Has("launch_overhead"))
    device.launch_overhead = reader.At("launch_overhead").Duration();
  if (device.launch_overhead > kLongestLatency)
    reader.At("launch_overhead").Expected(fmt::format("at most {} s", kLongestLatency.value()));
  if (reader.Has("slowdown")) device.slowdown = ReadSlowdown(reader.At("slowdown"));
  if (reader.Has("host_cores")) {
    constexpr double kMostCores = 1e6;
    device.host_cores = reader.At("host_cores").Number(0, kMostCores);
  }
  if (reader.Has("sources")) {
    for (const auto& [figure, source] : reader.At("sources").Members())
      device.sources.emplace_back(figure, source.String());
    return device;
  }
  const Place place = reader.place();
  device.sources.emplace_back(
      "all", place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file);
  return device;
}

// The vertices by name, with what is needed to say "did you mean".
struct Vertices {
  std::map<std::string, VertexId> by_name;
  std::vector<std::string> names;

  VertexId Find(const JsonReader& reader) const {
    const std::string name = reader.String();
    const auto found = by_name.find(name);
    if (found == by_name.end())
      reader.Fail(fmt::format("there is no vertex \"{}\"{}", name, DidYouMean(name, names)));
    return found->second;
  }
};

// Adds each device to the cluster once, however often it is named or described in the same words.
class DeviceSpecs {
 public:
  explicit DeviceSpecs(ClusterBuilder& cluster) : cluster_(cluster) {}

  uint32_t Add(const JsonReader& reader) {
    const auto known = added_.find(reader.value());
    if (known != added_.end()) return known->second;
    const uint32_t device = cluster_.AddDeviceSpec(ReadDevice(reader));
    added_.emplace(reader.value(), device);
    return device;
  }

 private:
  ClusterBuilder& cluster_;
  std::map<nlohmann::json, uint32_t> added_;
};

Vertices ReadVertices(const JsonReader& graph, ClusterBuilder& cluster) {
  Vertices vertices;
  DeviceSpecs specs(cluster);
  std::optional<uint32_t> usual_device;
  if (graph.Has("device")) usual_device = specs.Add(graph.At("device"));
  for (const JsonReader& reader : graph.At("vertices").Elements()) {
    reader.AllowKeys({"name", "kind", "node", "device"});
    Vertex vertex;
    uint32_t device = 0;
    vertex.name = ReadName(reader.At("name"));
    if (vertices.by_name.count(vertex.name) > 0)
      reader.At("name").Fail(fmt::format("there is another vertex \"{}\"", vertex.name));
    vertex.kind = ReadKind(reader.At("kind"), kVertexKinds);
    if (reader.Has("node")) vertex.node = ReadName(reader.At("node"));
    if (vertex.kind == VertexKind::kDevice) {
      if (!reader.Has("device") && !usual_device)
        reader.Fail(fmt::format(
            "nothing says which device \"{}\" is; give it a \"device\", or the whole cluster",
            vertex.name));
      device = reader.Has("device") ? specs.Add(reader.At("device")) : *usual_device;
    } else if (reader.Has("device")) {
      reader.At("device").Fail(
          fmt::format("vertex \"{}\" is of kind {}, only a device has a \"device\"", vertex.name,
                      Name(vertex.kind)));
    }
    const std::string name = vertex.name;
    vertices.by_name[name] = cluster.AddVertex(vertex, device);
    vertices.names.push_back(name);
  }
  return vertices;
}

void ReadLink(const JsonReader& reader, const Vertices& vertices, ClusterBuilder& cluster) {
  reader.AllowKeys({"between", "from", "to", "kind", "bandwidth", "latency", "efficiency"});
  ClusterLink link;
  link.kind = ReadKind(reader.At("kind"), kLinkKinds);
  link.bandwidth = reader.At("bandwidth").Bandwidth();
  link.latency = reader.At("latency").Duration();
  if (link.latency > kLongestLatency)
    reader.At("latency").Expected(fmt::format("at most {} s", kLongestLatency.value()));
  link.efficiency = ReadEfficiency(reader, "efficiency");

  const bool both_ways = reader.Has("between");
  if (both_ways == (reader.Has("from") || reader.Has("to")))
    reader.Fail("a link has either \"between\" (both ways) or \"from\" and \"to\" (one way)");
  const auto add = [&](VertexId from, VertexId to) {
    if (from == to) reader.Fail("the link leads from a vertex to itself");
    cluster.AddLink(from, to, link);
  };
  if (both_ways) {
    const std::vector<JsonReader> ends = reader.At("between").Elements();
    if (ends.size() != 2) reader.At("between").Expected("the names of two vertices");
    const VertexId a = vertices.Find(ends[0]);
    const VertexId b = vertices.Find(ends[1]);
    add(a, b);
    add(b, a);
  } else {
    const VertexId from = vertices.Find(reader.At("from"));
    add(from, vertices.Find(reader.At("to")));
  }
}

}  // namespace

Seconds ReadOverhead(const JsonReader& reader) {
  const Seconds overhead = reader.Duration();
  if (overhead > kLongestLatency)
    reader.Expected(fmt::format("at most {} s", kLongestLatency.value()));
  return overhead;
}

DeviceSpec ReadDevice(const JsonReader& reader) {
  if (reader.IsObject()) return ReadDeviceObject(reader);
  if (!reader.IsString()) reader.Expected("the name of a device or an object that describes one");
  const std::string name = reader.String();
  try {
    return FindDevice(name);
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

std::unique_ptr<Cluster> ReadGraph(const JsonReader& reader) {
  reader.AllowKeys({"name", "device", "routed_as", "notes", "vertices", "links", "step_overhead",
                    "collective_overhead", "channel_overhead", "calibration", "edits"});
  ClusterBuilder cluster(ReadName(reader.At("name")));
  if (reader.Has("notes"))
    for (const JsonReader& note : reader.At("notes").Elements()) cluster.AddNote(note.String());
  const Vertices vertices = ReadVertices(reader, cluster);
  for (const JsonReader& link : reader.At("links").Elements()) ReadLink(link, vertices, cluster);
  if (reader.Has("step_overhead"))
    cluster.set_step_overhead(ReadOverhead(reader.At("step_overhead")));
  if (reader.Has("collective_overhead"))
    cluster.set_collective_overhead(ReadOverhead(reader.At("collective_overhead")));
  if (reader.Has("channel_overhead"))
    cluster.set_channel_overhead(ReadOverhead(reader.At("channel_overhead")));
  try {
    return std::make_unique<Cluster>(cluster.Finish());
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace rehearse
