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
#include "topology/files/exact_text.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kVertexKinds = {VertexKind::kDevice,     VertexKind::kNic,
                                     VertexKind::kPcieSwitch, VertexKind::kSocket,
                                     VertexKind::kNvSwitch,   VertexKind::kSwitch};

const Fields<Vertex>& VertexFields() {
  static const Fields<Vertex> fields(
      "vertex", "A device, or a point where links meet.",
      {{"name", &Vertex::name, AName(), Required(), "its name, of parts separated by slashes",
        "\"node0/gpu0\""},
       {"kind", &Vertex::kind, OneNamedOf(kVertexKinds), Required(), "what it is"},
       {"node", &Vertex::node, AName(), Optional("no machine"), "which machine it is part of",
        "\"node0\""},
       {"device", DeviceChoiceShape(), Optional("the cluster's"), "which device it is",
        "\"h100\""}});
  return fields;
}

const Fields<ClusterLink>& GraphLinkFields() {
  static const Fields<ClusterLink> fields(
      "link of a graph", "A link between two vertices, both ways, or from one to the other.",
      {{"between", Tuple({AText("name of a vertex"), AText("name of a vertex")}),
        Optional("\"from\" and \"to\""), "the two ends, both ways", R"(["gpu0", "sw"])"},
       {"from", AText("name of a vertex"), Optional("\"between\""), "where it begins, one way",
        "\"gpu1\""},
       {"to", AText("name of a vertex"), Optional("\"between\""), "where it ends, one way",
        "\"sw\""},
       LinkRowsOfGraph()});
  return fields;
}

// The vertices by name, with what is needed to say "did you mean".
struct VerticesRead {
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

VerticesRead ReadVertices(const JsonReader& graph, ClusterBuilder& cluster) {
  VerticesRead vertices;
  DeviceSpecs specs(cluster);
  std::optional<uint32_t> usual_device;
  if (graph.Has("device")) usual_device = specs.Add(graph.At("device"));
  for (const JsonReader& element : graph.At("vertices").Elements()) {
    const JsonReader reader = element.As(VertexFields().shape());
    const Vertex vertex = VertexFields().Read(element);
    uint32_t device = 0;
    if (vertices.by_name.count(vertex.name) > 0)
      reader.At("name").Fail(fmt::format("there is another vertex \"{}\"", vertex.name));
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
    vertices.by_name[vertex.name] = cluster.AddVertex(vertex, device);
    vertices.names.push_back(vertex.name);
  }
  return vertices;
}

void ReadLink(const JsonReader& object, const VerticesRead& vertices, ClusterBuilder& cluster) {
  const JsonReader reader = object.As(GraphLinkFields().shape());
  ClusterLink link;
  GraphLinkFields().ReadInto(reader, &link);

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

const Fields<GraphObject>& GraphFields() {
  const auto overhead = [](const char* name, Seconds GraphObject::*member, FieldPresence presence,
                           const char* about) -> Field<GraphObject> {
    return {name,  member,   AnExactDurationUpTo(kLongestLatency), std::move(presence),
            about, "\"5us\""};
  };
  static const Fields<GraphObject> fields(
      "cluster: graph", "A cluster drawn vertex by vertex and link by link.",
      {SchemaForEditors(),
       {"name", &GraphObject::name, AName(), Required(), "what results call it",
        "\"two GPUs on a switch\""},
       {"device", DeviceChoiceShape(), Optional("each vertex says"),
        "the device of vertices that do not say", "\"a100-40g\""},
       {"routed_as",
        Either({AText("preset with changes"), ObjectOf(PresetClusterShape),
                ObjectOf(CompactClusterShape)}),
        Optional("routes are searched"),
        "the cluster, before edits, whose vertices and links these are", "\"dgx-a100:nodes=4\""},
       NotesRow(&GraphObject::notes),
       {"vertices", ListOf(ObjectOf(ShapeIn<VertexFields>)), Required(),
        "the vertices; devices are in the order of ranks",
        R"([{"name": "gpu0", "kind": "device"}])"},
       {"links", ListOf(ObjectOf(ShapeIn<GraphLinkFields>)), Required(), "links between vertices",
        R"([{"between": ["gpu0", "sw"], "kind": "nvlink", )"
        R"("bandwidth": "300GBps", "latency": "1us"}])"},
       overhead("step_overhead", &GraphObject::step_overhead, UsualAndWritten(),
                "overhead of each step of a collective"),
       overhead("collective_overhead", &GraphObject::collective_overhead, Usual(),
                "overhead of launching a collective"),
       overhead("channel_overhead", &GraphObject::channel_overhead, Usual(),
                "overhead of launching each of its channels"),
       NetworkPluginRow(&GraphObject::network_plugin, "ib"),
       MeasuredAndEdited<GraphObject>()});
  return fields;
}

const ObjectShape& GraphClusterShape() { return GraphFields().shape(); }

Json VertexToJson(const Vertex& vertex) {
  Json json;
  VertexFields().Write(vertex, &json);
  return json;
}

void WriteLink(const ClusterLink& link, Json* to) { GraphLinkFields().Write(link, to); }

std::unique_ptr<Cluster> ReadGraph(const JsonReader& object) {
  const JsonReader reader = object.As(GraphClusterShape());
  GraphObject graph;
  GraphFields().ReadInto(reader, &graph);
  ClusterBuilder cluster(graph.name);
  for (const std::string& note : graph.notes) cluster.AddNote(note);
  const VerticesRead vertices = ReadVertices(reader, cluster);
  for (const JsonReader& link : reader.At("links").Elements()) ReadLink(link, vertices, cluster);
  cluster.set_step_overhead(graph.step_overhead);
  cluster.set_collective_overhead(graph.collective_overhead);
  cluster.set_channel_overhead(graph.channel_overhead);
  cluster.set_network_plugin(FindNetworkPlugin(graph.network_plugin));
  try {
    return std::make_unique<Cluster>(cluster.Finish());
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace rehearse
