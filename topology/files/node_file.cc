#include "topology/files/node_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"
#include "topology/files/exact_text.h"
#include "topology/presets/node_nvidia.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// ---- The host -----------------------------------------------------------------------------------

constexpr ValueName<NicPlace> kNicPlaces[] = {{"switch", NicPlace::kSwitch},
                                              {"socket", NicPlace::kSocket}};

const Fields<MoreNics>& MoreNicsFields() {
  static const Fields<MoreNics> fields(
      "more NICs of a node", "NICs of another speed, numbered after the others.",
      {{"count", &MoreNics::count, AWhole(1, kMostCounted), Required(), "how many NICs", "2"},
       LinkRow<LinkKind::kNetwork>("cable", &MoreNics::cable, Required(),
                                   "from each of their ports to the fabric"),
       LinkRow<LinkKind::kPcie>("nic_pcie", &MoreNics::pcie, Optional("as the others"),
                                "from a NIC to its switch or socket"),
       {"nic_place", &MoreNics::place, OneOf(kNicPlaces), Optional("as the others"),
        "where they are"}});
  return fields;
}

FieldList<Host> HostRows() {
  constexpr int64_t kMostPorts = 4096;
  return {
      LinkRow<LinkKind::kPcie>("pcie", &Host::device, Optional("no host"),
                               "from a device to its PCIe switch or socket"),
      {"sockets", &Host::sockets, AWhole(1, kMostCounted), Usual(), "sockets of the host", "2"},
      {"pcie_switches", &Host::switches, AWhole(0, kMostCounted), Usual(),
       "PCIe switches of the host", "4"},
      LinkRow<LinkKind::kSocket>("between_sockets", &Host::between_sockets,
                                 Optional("sockets are not joined"), "between any two sockets"),
      LinkRow<LinkKind::kPcie>("root_port", &Host::root_port, Optional("as pcie"),
                               "from a PCIe switch to its socket"),
      {"nics", &Host::nics, AWhole(0, kMostCounted), Usual(), "NICs of the node", "8"},
      LinkRow<LinkKind::kPcie>("nic_pcie", &Host::nic, Optional("as pcie"),
                               "from a NIC to its switch or socket"),
      {"nic_place", &Host::nic_place, OneOf(kNicPlaces), Optional("switch, if there are any"),
       "where NICs are"},
      {"nic_ports", &Host::nic_ports, AWhole(1, kMostPorts), Usual(),
       "ports of each NIC, each with a cable; what is sent is split over them", "2"},
      {"more_nics", &Host::more_nics, ListOf(ObjectIn<MoreNicsFields>()), Optional("all are alike"),
       "NICs of another speed; a device uses the fastest that it can reach, and of these the "
       "nearest",
       R"([{"count": 2, "cable": {"bandwidth": "25GBps", "latency": "3.5us"}}])"},
      LinkRow<LinkKind::kXgmi>("device_to_socket", &Host::device_to_socket, Optional("none"),
                               "from a device to its socket, beside that to its PCIe switch, which "
                               "then leads nowhere else unless there is a root_port"),
      LinkRow<LinkKind::kMemory>("memory", &Host::memory,
                                 Optional("devices have peer-to-peer access"),
                                 "memory of each socket, which copies between devices go through"),
      {"memory_bandwidth", &Host::memory_bandwidth, AnExactBandwidth(), Optional("not given"),
       "nominal bandwidth of the memory of each socket, which an optimizer on the host needs",
       "\"204.8GBps\""},
      {"socket_name", &Host::socket_name, AName(), Usual(), "what sockets are called", "\"numa\""},
      {"switch_name", &Host::switch_name, AName(), Usual(), "what PCIe switches are called",
       "\"package\""}};
}

// Adds what is as something else.
void CompleteHost(const JsonReader& reader, Host* host) {
  if (host->root_port && host->switches == 0)
    reader.At("root_port")
        .Fail("joins PCIe switches to sockets, but there are no \"pcie_switches\"");
  if (!host->root_port && !host->device_to_socket) host->root_port = host->device;
  if (host->device_to_socket && host->switches == 0)
    reader.At("device_to_socket")
        .Fail("is beside the way to a PCIe switch, but there are no \"pcie_switches\"");
  if (!host->nic) host->nic = host->device;
  for (size_t i = 0; i < host->more_nics.size(); ++i) {
    const JsonReader said = reader.At("more_nics").Elements()[i];
    if (!said.Has("nic_pcie")) host->more_nics[i].pcie = *host->nic;
    if (!said.Has("nic_place")) host->more_nics[i].place = host->nic_place;
  }
  if (reader.Has("nic_ports") && host->nics == 0 && host->more_nics.empty())
    reader.At("nic_ports").Fail("are those of NICs, but there are no \"nics\"");
}

// ---- The node -----------------------------------------------------------------------------------

enum class NodeKind : uint8_t { kNvSwitch, kAllToAll, kPairs, kCubeMesh, kLinks, kPcie };
constexpr ValueName<NodeKind> kNodeKinds[] = {
    {"nvswitch", NodeKind::kNvSwitch}, {"all-to-all", NodeKind::kAllToAll},
    {"pairs", NodeKind::kPairs},       {"cube-mesh", NodeKind::kCubeMesh},
    {"links", NodeKind::kLinks},       {"pcie", NodeKind::kPcie}};

struct NodeObject {
  NodeKind kind = NodeKind::kNvSwitch;
  NodeSpec spec;
  std::optional<ClusterLink> nvlink;
  Host host;
};

void ReadLanes(const JsonReader& reader, NodeObject* node) {
  if (node->kind != NodeKind::kLinks)
    reader.Fail(
        fmt::format("a node of kind \"{}\" knows its own links", NameIn(kNodeKinds, node->kind)));
  for (const JsonReader& triple : reader.Elements()) {
    const std::vector<JsonReader> parts = triple.Elements();
    if (parts.size() != 3) triple.Expected("two devices and a number of lanes, such as [0, 1, 2]");
    const auto device = [&](size_t i) {
      return static_cast<uint32_t>(parts[i].Integer(0, int64_t{node->spec.devices} - 1));
    };
    const uint32_t a = device(0);
    const uint32_t b = device(1);
    if (a == b) triple.Fail("the link leads from a device to itself");
    node->spec.lanes.push_back({a, b, parts[2].Whole<uint32_t>()});
  }
}

void WriteLanes(const NodeObject& node, Json* to) {
  for (const DeviceLanes& lanes : node.spec.lanes) to->push_back({lanes.a, lanes.b, lanes.lanes});
}

// How devices are joined directly.
void JoinDevices(const JsonReader& reader, NodeObject* node) {
  NodeSpec& spec = node->spec;
  if (node->kind == NodeKind::kPcie) {
    if (node->nvlink)
      reader.At("nvlink").Fail("a node of kind \"pcie\" has no direct links between devices");
    return;
  }
  MustHave(reader, {"nvlink"});
  (node->kind == NodeKind::kNvSwitch ? spec.nvswitch : spec.lane) = node->nvlink;
  if (node->kind == NodeKind::kAllToAll) {
    constexpr uint32_t kMostJoined = 1024;  // with as many pairs as a node may have links
    if (spec.devices > kMostJoined)
      reader.At("devices").Expected(
          fmt::format("a whole number from 1 to {} where every two are joined", kMostJoined));
    spec.lanes = AllToAll(spec.devices, 1);
  }
  if (node->kind == NodeKind::kPairs) {
    if (spec.devices % 2 != 0) reader.At("devices").Expected("an even number, for pairs");
    for (uint32_t i = 0; i < spec.devices; i += 2) spec.lanes.push_back({i, i + 1, 1});
  }
  if (node->kind == NodeKind::kCubeMesh) {
    if (spec.devices != 8) reader.At("devices").Expected("8, for a hybrid cube mesh");
    spec.lanes = Dgx1V100Node().lanes;
  }
  if (node->kind == NodeKind::kLinks) MustHave(reader, {"lanes"});
}

// Names the count that makes the node too large.
[[noreturn]] void RefuseSize(const JsonReader& reader, const NodeSpec& node) {
  NodeSpec alone = node;
  alone.host->between_sockets.reset();
  const bool is_by_pairs = SizeOf(alone).wires <= kMostNodeWires;
  constexpr uint32_t kMostSockets = 1024;  // with as many pairs as a node may have links
  if (is_by_pairs && node.host->sockets > kMostSockets)
    reader.At("sockets").Expected(
        fmt::format("a whole number from 1 to {} where every two are joined", kMostSockets));
  reader.Fail(fmt::format("found a node of {} links, expected at most {}", SizeOf(node).wires,
                          kMostNodeWires));
}

void CompleteNode(const JsonReader& reader, NodeObject* node) {
  JoinDevices(reader, node);
  NodeSpec& spec = node->spec;
  if (reader.Has("pcie")) {
    CompleteHost(reader, &node->host);
    spec.host = node->host;
    if (spec.host->nics > 0 && !spec.cable) reader.Fail("the NICs need a \"cable\" to the fabric");
    if (SizeOf(spec).wires > kMostNodeWires) RefuseSize(reader, spec);
    return;
  }
  static const FieldList<Host> host_rows = HostRows();
  for (const Field<Host>& rows : host_rows) {
    const std::string& key = rows.rows().front().key.name;
    if (reader.Has(key)) reader.At(key).Fail("is part of a host, which begins with \"pcie\"");
  }
}

bool AreSame(const std::vector<DeviceLanes>& a, const std::vector<DeviceLanes>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const DeviceLanes& x, const DeviceLanes& y) {
                      return x.a == y.a && x.b == y.b && x.lanes == y.lanes;
                    });
}

// The kind that knows the links between the devices, if one does.
NodeKind KindOf(const NodeSpec& node) {
  if (node.nvswitch) return NodeKind::kNvSwitch;
  if (node.lanes.empty()) return NodeKind::kPcie;
  if (AreSame(node.lanes, Dgx1V100Node().lanes)) return NodeKind::kCubeMesh;
  if (AreSame(node.lanes, AllToAll(node.devices, 1))) return NodeKind::kAllToAll;
  return NodeKind::kLinks;
}

const Fields<NodeObject>& NodeFields() {
  constexpr int64_t kMostDevices = 4096;
  static const Fields<NodeObject> fields(
      "node", "What a machine is made of; the keys below \"pcie\" need it.",
      {{"kind", &NodeObject::kind, OneOf(kNodeKinds), Required(),
        "how devices are joined directly; pcie: they are not"},
       Field<NodeSpec>("devices", &NodeSpec::devices, AWhole(1, kMostDevices), Required(),
                       "how many devices", "8")
           .Within(&NodeObject::spec),
       {"device", DeviceChoiceShape(), Required(), "which device", "\"h100\""},
       Field<NodeSpec>("prefix", &NodeSpec::prefix, AName(), Usual(), "what nodes are called",
                       "\"rack\"")
           .Within(&NodeObject::spec),
       Field<NodeSpec>("device_name", &NodeSpec::device_name, AName(), Usual(),
                       "what devices are called", "\"gcd\"")
           .Within(&NodeObject::spec),
       LinkRow<LinkKind::kNvLink>("nvlink", &NodeObject::nvlink, Optional("none, of kind pcie"),
                                  "a device's link to the plane, the link of a pair, or one lane"),
       {"lanes", kItself,
        ReadBy(ListOf(Tuple(
                   {AWhole(0, kMostDevices), AWhole(0, kMostDevices), AWhole(1, kMostCounted)})),
               ReadLanes, WriteLanes),
        Optional("the kind knows them"), "for kind links: [device, device, number of lanes]",
        "[[0, 1, 2]]"},
       LinkRow<LinkKind::kNetwork>(
           "cable", &NodeSpec::cable, Optional("none"),
           "from each NIC to the fabric, or from each device where there are no NICs")
           .Within(&NodeObject::spec),
       Within(&NodeObject::host, HostRows())},
      CompleteNode);
  return fields;
}

}  // namespace

const ObjectShape& MachineNodeShape() { return NodeFields().shape(); }

NodeSpec ReadNode(const JsonReader& object) { return NodeFields().Read(object).spec; }

Json NodeToJson(const NodeSpec& node, const Json& device) {
  NodeObject object;
  object.spec = node;
  object.kind = KindOf(node);
  object.nvlink = node.nvswitch ? node.nvswitch : node.lane;
  if (object.kind != NodeKind::kLinks) object.spec.lanes.clear();
  if (node.host) object.host = *node.host;
  // Filled in where it was read, though there is nothing that has them.
  if (object.host.switches == 0) object.host.root_port.reset();
  if (object.host.nics == 0 && object.host.more_nics.empty()) object.host.nic.reset();
  Json written;
  NodeFields().Write(object, &written);
  written["device"] = device;
  Json json;
  for (const JsonKey& row : MachineNodeShape().keys)
    if (written.contains(row.name)) json[row.name] = written[row.name];
  return json;
}

}  // namespace rehearse
