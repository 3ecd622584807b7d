#include "topology/files/graph_file.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/cluster/builder.h"
#include "topology/devices/attention_model.h"
#include "topology/devices/gemm_model.h"
#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"

namespace rehearse {
namespace {

constexpr std::array kVertexKinds = {VertexKind::kDevice,     VertexKind::kNic,
                                     VertexKind::kPcieSwitch, VertexKind::kSocket,
                                     VertexKind::kNvSwitch,   VertexKind::kSwitch};

std::string ReadName(const JsonReader& reader) {
  std::string name = reader.String();
  if (name.empty()) reader.Expected("a name");
  return name;
}

GemmPoint ReadGemmPoint(const JsonReader& object) {
  const JsonReader reader = object.As(GemmPointShape());
  constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
  const auto size = [&](const char* key) { return reader.At(key).Whole<uint64_t>(); };
  return {.mode = kModes[reader.At("mode").Choice()],
          .m = size("m"),
          .n = size("n"),
          .k = size("k"),
          .efficiency = reader.At("efficiency").Number()};
}

AttentionPass ReadAttentionPass(const JsonReader& object) {
  const JsonReader reader = object.As(AttentionPassShape());
  AttentionPass pass;
  const std::vector<JsonReader> rates = reader.At("rates").Elements();
  if (rates.size() != pass.rates.size())
    reader.At("rates").Expected("[heads of 64, of 128, of 256]");
  for (size_t i = 0; i < rates.size(); ++i) pass.rates[i] = rates[i].Number();
  pass.causal = reader.At("causal").Number();
  pass.setup = reader.At("setup").Number();
  pass.tail = reader.At("tail").Number();
  return pass;
}

std::shared_ptr<const AttentionModel> ReadAttentionModel(const JsonReader& object) {
  constexpr std::array kKernels = {AttentionKernel::kFlash1, AttentionKernel::kFlash2,
                                   AttentionKernel::kFlash3, AttentionKernel::kCudnn,
                                   AttentionKernel::kEfficient};
  const JsonReader reader = object.As(AttentionModelShape());
  AttentionModel model;
  model.multiprocessors = reader.At("multiprocessors").Whole<uint32_t>();
  model.launch = reader.At("launch").Duration();
  for (const JsonReader& element : reader.At("kernels").Elements()) {
    const JsonReader kernel = element.As(AttentionRatesShape());
    AttentionRates rates;
    rates.kernel = kKernels[kernel.At("kernel").Choice()];
    if (!model.kernels.empty() && FindRates(model, rates.kernel) != nullptr)
      kernel.At("kernel").Fail(fmt::format("\"{}\" appears twice", Name(rates.kernel)));
    rates.rows = kernel.At("rows").Whole<uint32_t>();
    rates.forward = ReadAttentionPass(kernel.At("forward"));
    rates.backward = ReadAttentionPass(kernel.At("backward"));
    model.kernels.push_back(rates);
  }
  if (model.kernels.empty()) reader.At("kernels").Expected("one or more");
  return std::make_shared<const AttentionModel>(std::move(model));
}

std::shared_ptr<const GemmModel> ReadGemmModel(const JsonReader& object) {
  const JsonReader reader = object.As(GemmModelShape());
  GemmModel model;
  model.library = kGemmLibraries[reader.At("library").Choice()];
  model.multiprocessors = reader.At("multiprocessors").Whole<uint32_t>();
  model.few_waves = reader.At("few_waves").Number();
  model.many_waves = reader.At("many_waves").Number();
  model.sustained = reader.At("sustained").Number();
  model.launch = reader.At("launch").Duration();
  if (reader.Has("cache")) model.cache = reader.At("cache").Size();
  return std::make_shared<const GemmModel>(model);
}

}  // namespace

namespace {

Waves ReadWaves(const JsonReader& object) {
  const JsonReader reader = object.As(WavesShape());
  Waves waves;
  waves.multiprocessors = reader.At("multiprocessors").Whole<uint32_t>();
  waves.taken = reader.At("taken").Whole<uint32_t>();
  if (waves.taken >= waves.multiprocessors)
    reader.At("taken").Expected(fmt::format("fewer than {}", waves.multiprocessors));
  const std::vector<JsonReader> tile = reader.At("tile").Elements();
  if (tile.size() != 2) reader.At("tile").Expected("[rows, columns]");
  waves.tile_rows = tile[0].Whole<uint32_t>();
  waves.tile_columns = tile[1].Whole<uint32_t>();
  waves.is_persistent = reader.At("persistent").Bool();
  return waves;
}

}  // namespace

Slowdown ReadSlowdown(const JsonReader& object) {
  const JsonReader reader = object.As(SlowdownShape());
  Slowdown slowdown;
  slowdown.gemm = reader.At("gemm").Number();
  slowdown.attention = reader.At("attention").Number();
  slowdown.memory = reader.At("memory").Number();
  slowdown.communication = reader.At("communication").Number();
  if (reader.Has("waves")) slowdown.waves = ReadWaves(reader.At("waves"));
  return slowdown;
}

namespace {

DeviceSpec ReadDeviceObject(const JsonReader& object) {
  const JsonReader reader = object.As(DeviceShape());
  const auto optional_rate = [&](const char* key) {
    return reader.Has(key) ? reader.At(key).FlopRate() : FlopsPerSecond(0);
  };
  DeviceSpec device;
  device.name = ReadName(reader.At("name"));
  device.description = reader.Has("description") ? reader.At("description").String() : device.name;
  device.compute_capability = reader.At("compute_capability").Whole<uint32_t>();
  device.matrix_peak_16 = reader.At("matrix_peak_16").FlopRate();
  device.matrix_peak_8 = optional_rate("matrix_peak_8");
  device.matrix_peak_4 = optional_rate("matrix_peak_4");
  device.matrix_peak_32 = optional_rate("matrix_peak_32");
  device.vector_peak_32 = optional_rate("vector_peak_32");
  device.vector_peak_64 = optional_rate("vector_peak_64");
  device.memory = reader.At("memory").Size();
  device.memory_bandwidth = reader.At("memory_bandwidth").Bandwidth();
  device.memory_efficiency = reader.At("memory_efficiency").Number();
  if (reader.Has("cache")) device.cache = reader.At("cache").Size();
  device.cache_bandwidth = reader.Has("cache_bandwidth") ? reader.At("cache_bandwidth").Bandwidth()
                                                         : device.memory_bandwidth;
  device.strided_element = reader.At("strided_element").Duration();
  device.gemm_efficiency = reader.At("gemm_efficiency").Number();
  device.gemm_scale = reader.At("gemm_scale").Number();
  for (const JsonReader& point : reader.At("gemm_points").Elements())
    device.gemm_points.push_back(ReadGemmPoint(point));
  if (reader.Has("gemm_model")) device.gemm_model = ReadGemmModel(reader.At("gemm_model"));
  if (reader.Has("gemm_model_8")) device.gemm_model_8 = ReadGemmModel(reader.At("gemm_model_8"));
  if (reader.Has("attention_model"))
    device.attention_model = ReadAttentionModel(reader.At("attention_model"));
  device.attention_forward_efficiency = reader.At("attention_forward_efficiency").Number();
  device.attention_backward_efficiency = reader.At("attention_backward_efficiency").Number();
  device.launch_overhead = reader.At("launch_overhead").Duration();
  if (reader.Has("slowdown")) device.slowdown = ReadSlowdown(reader.At("slowdown"));
  device.host_cores = reader.At("host_cores").Number();
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

// Adds each device to the cluster once, however often it is named or described identically.
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
  for (const JsonReader& element : graph.At("vertices").Elements()) {
    const JsonReader reader = element.As(VertexShape());
    Vertex vertex;
    uint32_t device = 0;
    vertex.name = ReadName(reader.At("name"));
    if (vertices.by_name.count(vertex.name) > 0)
      reader.At("name").Fail(fmt::format("there is another vertex \"{}\"", vertex.name));
    vertex.kind = kVertexKinds[reader.At("kind").Choice()];
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

void ReadLink(const JsonReader& object, const Vertices& vertices, ClusterBuilder& cluster) {
  const JsonReader reader = object.As(GraphLinkShape());
  ClusterLink link;
  link.kind = kLinkKindChoices[reader.At("kind").Choice()];
  link.bandwidth = reader.At("bandwidth").Bandwidth();
  link.latency = reader.At("latency").Duration();
  link.efficiency = reader.At("efficiency").Number();

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

std::unique_ptr<Cluster> ReadGraph(const JsonReader& object) {
  const JsonReader reader = object.As(GraphClusterShape());
  ClusterBuilder cluster(ReadName(reader.At("name")));
  for (const JsonReader& note : reader.At("notes").Elements()) cluster.AddNote(note.String());
  const Vertices vertices = ReadVertices(reader, cluster);
  for (const JsonReader& link : reader.At("links").Elements()) ReadLink(link, vertices, cluster);
  cluster.set_step_overhead(reader.At("step_overhead").Duration());
  cluster.set_collective_overhead(reader.At("collective_overhead").Duration());
  cluster.set_channel_overhead(reader.At("channel_overhead").Duration());
  if (reader.Has("network_plugin"))
    cluster.set_network_plugin(FindNetworkPlugin(reader.At("network_plugin").String()));
  try {
    return std::make_unique<Cluster>(cluster.Finish());
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace rehearse
