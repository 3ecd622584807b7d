#include "topology/files/cluster_shapes.h"

#include <map>
#include <mutex>
#include <utility>

#include "topology/cluster/cluster.h"
#include "topology/files/calibration.h"
#include "topology/files/device_file.h"
#include "topology/files/edits.h"
#include "topology/files/given_rings.h"

namespace rehearse {
namespace {

constexpr int64_t kMostOfASwitch = 4096;

JsonKey Name(const char* example) {
  return {"name", AText(), Required(), "what results call it", example};
}

JsonKey Notes() {
  return {"notes", ListOf(AText()), Default("[]"), "remarks for the reader", R"(["as of March"])"};
}

JsonKey NetworkPluginRow(const char* otherwise) {
  std::vector<std::string> names;
  for (const NetworkPlugin& plugin : KnownNetworkPlugins()) names.push_back(plugin.name);
  return {"network_plugin", OneOf(std::move(names)), Optional(otherwise),
          "NCCL's network plugin, which decides latency and the protocols that can be used"};
}

JsonKey CalibrationRow() {
  return {"calibration", CalibrationInputShape(), Optional("as specified"),
          "what was measured on such a machine", "\"mine.json\""};
}

JsonKey DevicePointsRow() {
  return {"device_points", AText("path of a CSV file, from this one"), Optional("none"),
          "measured times of exact products and attention cores", "\"mine.csv\""};
}

JsonKey RingsRow() {
  return {"rings", GivenRingsShape(), Optional("they are searched"),
          "rings of whole machines, with devices by their number in the machine; rehearse import "
          "nccl-graph writes them",
          "[[0, 1, 2, 3], [0, 3, 2, 1]]"};
}

JsonKey EditsRow() {
  return {"edits", EditsShape(), Default("[]"), "changes to links and devices, made in order",
          R"([{"links": "node3/nic*", "bandwidth": "0.5x"}])"};
}

JsonKey Link(const char* name, Presence presence, const char* about) {
  return {name, ObjectOf(LinkShape), std::move(presence), about,
          R"({"bandwidth": "50GBps", "latency": "3.5us"})"};
}

JsonKey Efficiency() {
  return {"efficiency", ANumberAbove(0, 1), Default("1"),
          "share of the nominal bandwidth that one transfer gets", "0.8"};
}

ObjectShape ShapeOfPreset(std::string name, std::vector<std::string> presets) {
  return {std::move(name),
          "A known cluster, with changes (rehearse list clusters shows its parameters).",
          {{"preset", OneOf(std::move(presets)), Required(), "which cluster", "\"perlmutter\""},
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
  return {"routing", OneOf(std::move(names)), Default(first),
          "how one of several equal paths is chosen"};
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
       {"node",
        Either({AText("name of a preset, whose node is taken"), ObjectOf(MachineNodeShape)}),
        Required(), "what a machine is made of", "\"dgx-a100\""},
       {"device", DeviceChoiceShape(), Optional("the preset's"), "replaces the node's devices",
        "\"a100-80g\"", kPresetNode},
       {"nodes", AWhole(1, kMostCounted), Required(), "how many nodes", "32"},
       {"fabric",
        Either({ObjectOf(SwitchFabricShape), ObjectOf(FatTreeShape), ObjectOf(DragonflyShape),
                ObjectOf(TorusShape)}),
        Optional("none, for one node"), "what joins the nodes",
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
      {{"kind", LinkKindShape(), Optional("what its place suggests"), "of which technology"},
       {"bandwidth", ABandwidth(), Required(), "nominal bandwidth, each way", "\"50GBps\""},
       Efficiency(),
       {"latency", ADurationUpTo(kLongestLatency), Required(), "latency of the first byte",
        "\"3.5us\""}}};
  return shape;
}

const ObjectShape& MachineNodeShape() {
  constexpr int64_t kMostDevices = 4096;
  static const ObjectShape shape = {
      "node",
      "What a machine is made of; the keys below \"pcie\" need it.",
      {{"kind", OneOf({"nvswitch", "all-to-all", "pairs", "cube-mesh", "links", "pcie"}),
        Required(), "how devices are joined directly; pcie: they are not"},
       {"devices", AWhole(1, kMostDevices), Required(), "how many devices", "8"},
       {"device", DeviceChoiceShape(), Required(), "which device", "\"h100\""},
       Link("nvlink", Optional("none, of kind pcie"),
            "a device's link to the plane, the link of a pair, or one lane"),
       {"lanes",
        ListOf(Tuple({AWhole(0, kMostDevices), AWhole(0, kMostDevices), AWhole(1, kMostCounted)})),
        Optional("the kind knows them"), "for kind links: [device, device, number of lanes]",
        "[[0, 1, 2]]"},
       Link("cable", Optional("none"),
            "from each NIC to the fabric, or from each device where there are no NICs"),
       Link("pcie", Optional("no host"), "from a device to its PCIe switch or socket"),
       {"sockets", AWhole(1, kMostCounted), Default("1"), "sockets of the host", "2"},
       {"pcie_switches", AWhole(0, kMostCounted), Default("0"), "PCIe switches of the host", "4"},
       Link("between_sockets", Optional("sockets are not joined"), "between any two sockets"),
       Link("root_port", Optional("as pcie"), "from a PCIe switch to its socket"),
       {"nics", AWhole(0, kMostCounted), Default("0"), "NICs of the node", "8"},
       Link("nic_pcie", Optional("as pcie"), "from a NIC to its switch or socket"),
       {"nic_place", OneOf({"switch", "socket"}), Optional("switch, if there are any"),
        "where NICs are"},
       {"nic_ports", AWhole(1, kMostOfASwitch), Default("1"),
        "ports of each NIC, each with a cable; what is sent is split over them", "2"},
       {"more_nics", ListOf(ObjectOf(MoreNicsShape)), Optional("all are alike"),
        "NICs of another speed; a device uses the fastest that it can reach, and of these the "
        "nearest",
        R"([{"count": 2, "cable": {"bandwidth": "25GBps", "latency": "3.5us"}}])"},
       Link("memory", Optional("devices have peer-to-peer access"),
            "memory of each socket, which copies between devices go through")}};
  return shape;
}

const ObjectShape& MoreNicsShape() {
  static const ObjectShape shape = {
      "more NICs of a node",
      "NICs of another speed, numbered after the others.",
      {{"count", AWhole(1, kMostCounted), Required(), "how many NICs", "2"},
       Link("cable", Required(), "from each of their ports to the fabric"),
       Link("nic_pcie", Optional("as the others"), "from a NIC to its switch or socket"),
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
      "Levels of switches; rails: NICs with the same number share a leaf; rail-only: they share a "
      "tree that is not joined to the others.",
      {{"kind", OneOf({"fat-tree", "rails", "rail-only"}), Required(), "which fabric"},
       {"radix", AWhole(4, kMostOfASwitch), Required(), "ports of a switch, an even number", "64"},
       {"levels", AWhole(1, 6), Optional("as few as are needed"), "levels of switches", "3"},
       {"oversubscription", ANumber(1, kMostOfASwitch), Default("1"),
        "oversubscription at the leaves", "2"},
       {"planes", AWhole(1, kMostOfASwitch), Default("1"),
        "parallel trees; port p of a machine is cabled to tree p modulo their number", "2"},
       {"rails", AWhole(1, kMostOfASwitch), Optional("one for each port of a node"),
        "of kind rails: how many; port p of a node is on rail p modulo their number, and a leaf "
        "has whole nodes",
        "4"},
       RoutingRow(ChoicesOfFatTree()),
       {"queue_pairs", AWhole(1, kMostQueuePairs), Default("1"),
        "queue pairs of a pair of ranks, each hashed separately (ecmp)", "4"},
       Link("cable", Required(), "a cable between switches")}};
  return shape;
}

const ObjectShape& DragonflyShape() {
  static const ObjectShape shape = {
      "fabric: dragonfly",
      "Groups of switches; every two groups are joined.",
      {{"kind", OneOf({"dragonfly"}), Required(), "which fabric"},
       {"local", ListOf(ObjectOf(DragonflyDimensionShape)), Required(),
        "dimensions of a group, each joined all to all",
        R"([{"size": 32, "link": {"bandwidth": "25GBps", "latency": "0.3us"}}])"},
       {"nodes_per_switch", AWhole(1, kMostOfASwitch), Required(), "machines on each switch", "2"},
       {"global_cables", AWhole(1, kMostCounted), Required(), "global cables of each group", "64"},
       RoutingRow(ChoicesOfDragonfly()),
       Link("cable", Required(), "one of the global cables")}};
  return shape;
}

const ObjectShape& DragonflyDimensionShape() {
  static const ObjectShape shape = {
      "dimension of a dragonfly's group",
      "Switches that are joined all to all.",
      {{"size", AWhole(1, kMostOfASwitch), Required(), "how many switches", "32"},
       Link("link", Required(), "the link between two of them")}};
  return shape;
}

const ObjectShape& TorusShape() {
  static const ObjectShape shape = {
      "fabric: torus, mesh",
      "Each node is joined to its neighbours.",
      {{"kind", OneOf({"torus", "mesh"}), Required(), "which fabric"},
       {"dimensions", ListOf(ObjectOf(TorusDimensionShape)), Required(), "dimensions of the grid",
        R"([{"size": 4, "link": {"bandwidth": "50GBps", "latency": "1us"}}])"}}};
  return shape;
}

const ObjectShape& TorusDimensionShape() {
  static const ObjectShape shape = {
      "dimension of a torus",
      "Nodes in a row.",
      {{"size", AWhole(1, kMostCounted), Required(), "how many nodes", "4"},
       Link("link", Required(), "the link between neighbours"),
       {"wraps", TrueFalse(), Optional("a torus does, a mesh does not"),
        "whether the last and the first are neighbours", "true"}}};
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
       {"device", DeviceChoiceShape(), Optional("each vertex says"),
        "the device of vertices that do not say", "\"a100-40g\""},
       {"routed_as", AText("preset with changes"), Optional("routes are searched"),
        "the preset whose vertices and links these are", "\"dgx-a100:nodes=4\""},
       Notes(),
       {"vertices", ListOf(ObjectOf(VertexShape)), Required(),
        "the vertices; devices are in the order of ranks",
        R"([{"name": "gpu0", "kind": "device"}])"},
       {"links", ListOf(ObjectOf(GraphLinkShape)), Required(), "links between vertices",
        R"([{"between": ["gpu0", "sw"], "kind": "nvlink", )"
        R"("bandwidth": "300GBps", "latency": "1us"}])"},
       overhead("step_overhead", "overhead of each step of a collective"),
       overhead("collective_overhead", "overhead of launching a collective"),
       overhead("channel_overhead", "overhead of launching each of its channels"),
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
      "A device, or a point where links meet.",
      {{"name", AText(), Required(), "its name, of parts separated by slashes", "\"node0/gpu0\""},
       {"kind", OneOf({"device", "nic", "pcie-switch", "socket", "nvswitch", "switch"}), Required(),
        "what it is"},
       {"node", AText(), Optional("no machine"), "which machine it is part of", "\"node0\""},
       {"device", DeviceChoiceShape(), Optional("the cluster's"), "which device it is",
        "\"h100\""}}};
  return shape;
}

const ObjectShape& GraphLinkShape() {
  static const ObjectShape shape = {
      "link of a graph",
      "A link between two vertices, both ways, or from one to the other.",
      {{"between", Tuple({AText("name of a vertex"), AText("name of a vertex")}),
        Optional("\"from\" and \"to\""), "the two ends, both ways", R"(["gpu0", "sw"])"},
       {"from", AText("name of a vertex"), Optional("\"between\""), "where it begins, one way",
        "\"gpu1\""},
       {"to", AText("name of a vertex"), Optional("\"between\""), "where it ends, one way",
        "\"sw\""},
       {"kind", LinkKindShape(), Required(), "its technology"},
       {"bandwidth", ABandwidth(), Required(), "nominal bandwidth, each way", "\"300GBps\""},
       {"latency", ADurationUpTo(kLongestLatency), Required(), "latency of the first byte",
        "\"1us\""},
       Efficiency()}};
  return shape;
}

}  // namespace rehearse
