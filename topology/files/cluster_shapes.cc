#include "topology/files/cluster_shapes.h"

#include <map>
#include <mutex>
#include <utility>

#include "topology/cluster/cluster.h"
#include "topology/files/calibration.h"
#include "topology/files/device_shapes.h"
#include "topology/files/edits.h"
#include "topology/files/given_rings.h"

namespace rehearse {
namespace {

constexpr int64_t kMostOfASwitch = 4096;

JsonKey Name(const char* example) {
  return {"name", AText(), Required(), "what results call it", example};
}

JsonKey Notes() {
  return {"notes", ListOf(AText()), Default("[]"), "lines for the reader", R"(["as of March"])"};
}

JsonKey NetworkPluginRow(const char* otherwise) {
  std::vector<std::string> names;
  for (const NetworkPlugin& plugin : KnownNetworkPlugins()) names.push_back(plugin.name);
  return {"network_plugin", OneOf(std::move(names)), Optional(otherwise),
          "between NCCL and the NICs: its latency, protocols that it cannot carry"};
}

JsonKey CalibrationRow() {
  return {"calibration", CalibrationInputShape(), Optional("as specified"),
          "what was measured on such a machine", "\"mine.json\""};
}

JsonKey DevicePointsRow() {
  return {"device_points", AText("path of a CSV file, relative to this one"), Optional("none"),
          "times of exact products and attention cores", "\"mine.csv\""};
}

JsonKey RingsRow() {
  return {"rings", GivenRingsShape(), Optional("they are searched for"),
          "that whole machines use, devices by their place in the machine; rehearse import "
          "nccl-graph writes them",
          "[[0, 1, 2, 3], [0, 3, 2, 1]]"};
}

JsonKey EditsRow() {
  return {"edits", EditsShape(), Default("[]"), "what-ifs on links and devices, in order",
          R"([{"links": "node3/nic*", "bandwidth": "0.5x"}])"};
}

JsonKey Link(const char* name, Presence presence, const char* about) {
  return {name, ObjectOf(LinkShape), std::move(presence), about,
          R"({"bandwidth": "50GBps", "latency": "3.5us"})"};
}

JsonKey Efficiency() {
  return {"efficiency", ANumberAbove(0, 1), Default("1"),
          "of the nominal bandwidth that one transfer gets", "0.8"};
}

ObjectShape ShapeOfPreset(std::string name, std::vector<std::string> presets) {
  return {std::move(name),
          "A known cluster, with changes (rehearse list clusters shows its parameters).",
          {{"preset", OneOf(std::move(presets)), Required(), "which", "\"perlmutter\""},
           {"device", DeviceChoiceShape(), Optional("the preset's"), "replaces all devices",
            "\"a100-80g\""},
           CalibrationRow(),
           DevicePointsRow(),
           RingsRow(),
           EditsRow()}};
}

JsonKey RowOf(const PresetParameter& parameter) {
  const std::string usual = std::to_string(parameter.standard);
  return {parameter.name, AWhole(parameter.minimum, parameter.maximum), Default(usual),
          parameter.meaning, usual};
}

// The first choice holds for files that say nothing.
JsonKey RoutingRow(const FabricChoices& fabric) {
  std::vector<std::string> names;
  for (const RouteChoice choice : fabric.choices) names.emplace_back(Name(choice));
  const std::string first = "\"" + names.front() + "\"";
  return {"routing", OneOf(std::move(names)), Default(first), "among equal ways"};
}

}  // namespace

const ObjectShape& PresetClusterShape(const ClusterPreset& preset) {
  static std::mutex mutex;
  static std::map<std::string, ObjectShape> shapes;  // whose addresses stay
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = shapes.try_emplace(preset.name);
  if (is_new) {
    place->second = ShapeOfPreset("cluster: " + preset.name, {preset.name});
    for (const PresetParameter& parameter : preset.parameters)
      place->second.keys.push_back(RowOf(parameter));
  }
  return place->second;
}

const ObjectShape& PresetClusterShape() {
  static const ObjectShape shape = [] {
    std::vector<std::string> names;
    for (const ClusterPreset& preset : ClusterPresets()) names.push_back(preset.name);
    ObjectShape all = ShapeOfPreset("cluster: preset", std::move(names));
    for (const ClusterPreset& preset : ClusterPresets()) {
      for (const PresetParameter& parameter : preset.parameters) {
        if (all.Find(parameter.name) != nullptr) continue;
        JsonKey row = RowOf(parameter);
        row.presence = Optional("the preset's");
        all.keys.push_back(std::move(row));
      }
    }
    return all;
  }();
  return shape;
}

const ObjectShape& CompactClusterShape() {
  static const ObjectShape shape = {
      "cluster: compact",
      "A node, how many of them, and the fabric between them.",
      {SchemaForEditors(),
       Name("\"mine\""),
       {"node", Either({AText("name of a preset, whose node it is"), ObjectOf(MachineNodeShape)}),
        Required(), "what a machine is made of", "\"dgx-a100\""},
       {"device", DeviceChoiceShape(), Optional("the preset's"), "replaces the node's devices",
        "\"a100-80g\"", kPresetNode},
       {"nodes", AWhole(1, kMostCounted), Required(), "how many", "32"},
       {"fabric",
        Either({ObjectOf(SwitchFabricShape), ObjectOf(FatTreeShape), ObjectOf(DragonflyShape),
                ObjectOf(TorusShape)}),
        Optional("none, for one node"), "between the nodes",
        R"({"kind": "fat-tree", "radix": 64, "cable": {"bandwidth": "50GBps", "latency": "0us"}})"},
       NetworkPluginRow("ib, or that of the node's preset"),
       Notes(),
       CalibrationRow(),
       DevicePointsRow(),
       RingsRow(),
       EditsRow()}};
  return shape;
}

JsonShape LinkKindShape() {
  std::vector<std::string> names;
  for (const LinkKind kind : kLinkKindChoices) names.emplace_back(rehearse::Name(kind));
  return OneOf(std::move(names));
}

const ObjectShape& LinkShape() {
  static const ObjectShape shape = {
      "link",
      "A link, the same both ways.",
      {{"kind", LinkKindShape(), Optional("what its place suggests"), "which technology"},
       {"bandwidth", ABandwidth(), Required(), "nominal, each way", "\"50GBps\""},
       Efficiency(),
       {"latency", ADurationUpTo(kLongestLatency), Required(), "of the first byte", "\"3.5us\""}}};
  return shape;
}

const ObjectShape& MachineNodeShape() {
  constexpr int64_t kMostDevices = 4096;
  static const ObjectShape shape = {
      "node",
      "What a machine is made of; what is below \"pcie\" comes with it.",
      {{"kind", OneOf({"nvswitch", "all-to-all", "pairs", "cube-mesh", "links", "pcie"}),
        Required(), "how devices are joined directly; pcie: not at all"},
       {"devices", AWhole(1, kMostDevices), Required(), "how many", "8"},
       {"device", DeviceChoiceShape(), Required(), "which", "\"h100\""},
       Link("nvlink", Optional("none, of kind pcie"), "to the plane, of a pair, or one lane"),
       {"lanes",
        ListOf(Tuple({AWhole(0, kMostDevices), AWhole(0, kMostDevices), AWhole(1, kMostCounted)})),
        Optional("the kind knows them"), "of kind links: [device, device, number of lanes]",
        "[[0, 1, 2]]"},
       Link("cable", Optional("none"), "each NIC to the fabric, or without NICs each device"),
       Link("pcie", Optional("no host"), "device to its PCIe switch, or to its socket"),
       {"sockets", AWhole(1, kMostCounted), Default("1"), "of the host", "2"},
       {"pcie_switches", AWhole(0, kMostCounted), Default("0"), "of the host", "4"},
       Link("between_sockets", Optional("sockets are not joined"), "every two of them"),
       Link("root_port", Optional("as pcie"), "PCIe switch to socket"),
       {"nics", AWhole(0, kMostCounted), Default("0"), "of the node", "8"},
       Link("nic_pcie", Optional("as pcie"), "NIC to its switch or socket"),
       {"nic_place", OneOf({"switch", "socket"}), Optional("switch, if there are some"),
        "where NICs are"},
       {"nic_ports", AWhole(1, kMostOfASwitch), Default("1"),
        "of every NIC, each with a cable; what is sent is cut into as many parts", "2"},
       {"more_nics", ListOf(ObjectOf(MoreNicsShape)), Optional("all are alike"),
        "NICs of another speed; a device takes the fastest that it reaches, then the nearest",
        R"([{"count": 2, "cable": {"bandwidth": "25GBps", "latency": "3.5us"}}])"},
       Link("memory", Optional("devices have peer-to-peer access"),
            "of each socket: copies go through it")}};
  return shape;
}

const ObjectShape& MoreNicsShape() {
  static const ObjectShape shape = {
      "more NICs of a node",
      "NICs of another speed, numbered after the others.",
      {{"count", AWhole(1, kMostCounted), Required(), "how many", "2"},
       Link("cable", Required(), "each of their ports to the fabric"),
       Link("nic_pcie", Optional("as the others"), "NIC to its switch or socket"),
       {"nic_place", OneOf({"switch", "socket"}), Optional("as the others"), "where they are"}}};
  return shape;
}

const ObjectShape& SwitchFabricShape() {
  static const ObjectShape shape = {"fabric: switch",
                                    "One switch that passes everything.",
                                    {{"kind", OneOf({"switch"}), Required(), "which fabric"}}};
  return shape;
}

const ObjectShape& FatTreeShape() {
  static const ObjectShape shape = {
      "fabric: fat-tree, rails, rail-only",
      "Levels of switches; rails: a leaf for the NICs with the same number; rail-only: a tree for "
      "them, which nothing joins to the others.",
      {{"kind", OneOf({"fat-tree", "rails", "rail-only"}), Required(), "which fabric"},
       {"radix", AWhole(4, kMostOfASwitch), Required(), "ports of a switch, an even number", "64"},
       {"levels", AWhole(1, 6), Optional("as few as it takes"), "of switches", "3"},
       {"oversubscription", ANumber(1, kMostOfASwitch), Default("1"), "at the leaves", "2"},
       {"planes", AWhole(1, kMostOfASwitch), Default("1"),
        "trees side by side: port p of a machine is cabled to tree p modulo their number", "2"},
       RoutingRow(ChoicesOfFatTree()),
       {"queue_pairs", AWhole(1, kMostQueuePairs), Default("1"),
        "per pair of ranks, each hashed separately (ecmp)", "4"},
       Link("cable", Required(), "between switches")}};
  return shape;
}

const ObjectShape& DragonflyShape() {
  static const ObjectShape shape = {
      "fabric: dragonfly",
      "Groups of switches, every two groups joined.",
      {{"kind", OneOf({"dragonfly"}), Required(), "which fabric"},
       {"local", ListOf(ObjectOf(DragonflyDimensionShape)), Required(),
        "dimensions of a group, each joined all to all",
        R"([{"size": 32, "link": {"bandwidth": "25GBps", "latency": "0.3us"}}])"},
       {"nodes_per_switch", AWhole(1, kMostOfASwitch), Required(), "machines", "2"},
       {"global_cables", AWhole(1, kMostCounted), Required(), "of a group", "64"},
       RoutingRow(ChoicesOfDragonfly()),
       Link("cable", Required(), "one of the global cables")}};
  return shape;
}

const ObjectShape& DragonflyDimensionShape() {
  static const ObjectShape shape = {
      "dimension of a dragonfly's group",
      "Switches that are joined all to all.",
      {{"size", AWhole(1, kMostOfASwitch), Required(), "switches", "32"},
       Link("link", Required(), "between two of them")}};
  return shape;
}

const ObjectShape& TorusShape() {
  static const ObjectShape shape = {
      "fabric: torus, mesh",
      "Each node is joined to its neighbours.",
      {{"kind", OneOf({"torus", "mesh"}), Required(), "which fabric"},
       {"dimensions", ListOf(ObjectOf(TorusDimensionShape)), Required(), "of the grid",
        R"([{"size": 4, "link": {"bandwidth": "50GBps", "latency": "1us"}}])"}}};
  return shape;
}

const ObjectShape& TorusDimensionShape() {
  static const ObjectShape shape = {
      "dimension of a torus",
      "Nodes in a row.",
      {{"size", AWhole(1, kMostCounted), Required(), "nodes", "4"},
       Link("link", Required(), "between neighbours"),
       {"wraps", TrueFalse(), Optional("a torus does, a mesh does not"),
        "whether the last is the first's neighbour", "true"}}};
  return shape;
}

const ObjectShape& GraphClusterShape() {
  const auto overhead = [](const char* name, const char* about) {
    return JsonKey{name, ADurationUpTo(kLongestLatency), Default("\"0us\""), about, "\"5us\""};
  };
  static const ObjectShape shape = {
      "cluster: graph",
      "A cluster drawn vertex by vertex and link by link.",
      {SchemaForEditors(),
       Name("\"two GPUs on a switch\""),
       {"device", DeviceChoiceShape(), Optional("each vertex says it"),
        "of vertices that do not say it", "\"a100-40g\""},
       {"routed_as", AText("preset with changes"), Optional("routes are searched for"),
        "of which these are the vertices and links", "\"dgx-a100:nodes=4\""},
       Notes(),
       {"vertices", ListOf(ObjectOf(VertexShape)), Required(), "devices in the order of ranks",
        R"([{"name": "gpu0", "kind": "device"}])"},
       {"links", ListOf(ObjectOf(GraphLinkShape)), Required(), "between vertices",
        R"([{"between": ["gpu0", "sw"], "kind": "nvlink", )"
        R"("bandwidth": "300GBps", "latency": "1us"}])"},
       overhead("step_overhead", "of each step of a collective"),
       overhead("collective_overhead", "of launching a collective"),
       overhead("channel_overhead", "of launching each of its channels"),
       NetworkPluginRow("ib"),
       CalibrationRow(),
       DevicePointsRow(),
       RingsRow(),
       EditsRow()}};
  return shape;
}

const ObjectShape& VertexShape() {
  static const ObjectShape shape = {
      "vertex",
      "A device, or something that links meet in.",
      {{"name", AText(), Required(), "its parts are between slashes", "\"node0/gpu0\""},
       {"kind", OneOf({"device", "nic", "pcie-switch", "socket", "nvswitch", "switch"}), Required(),
        "what it is"},
       {"node", AText(), Optional("of no machine"), "which machine it is part of", "\"node0\""},
       {"device", DeviceChoiceShape(), Optional("the cluster's"), "which device it is",
        "\"h100\""}}};
  return shape;
}

const ObjectShape& GraphLinkShape() {
  static const ObjectShape shape = {
      "link of a graph",
      "Between two vertices, both ways; or from one to another.",
      {{"between", Tuple({AText("name of a vertex"), AText("name of a vertex")}),
        Optional("\"from\" and \"to\""), "both ways", R"(["gpu0", "sw"])"},
       {"from", AText("name of a vertex"), Optional("\"between\""), "one way", "\"gpu1\""},
       {"to", AText("name of a vertex"), Optional("\"between\""), "one way", "\"sw\""},
       {"kind", LinkKindShape(), Required(), "which technology"},
       {"bandwidth", ABandwidth(), Required(), "nominal, each way", "\"300GBps\""},
       {"latency", ADurationUpTo(kLongestLatency), Required(), "of the first byte", "\"1us\""},
       Efficiency()}};
  return shape;
}

}  // namespace rehearse
