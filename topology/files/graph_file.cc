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
