#include "topology/files/compact_form.h"

#include <limits>

#include <fmt/format.h>

#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/standard_machine.h"

namespace rehearse {
namespace {

uint32_t ReadCount(const JsonReader& reader) { return reader.Whole<uint32_t>(); }

ClusterLink ReadLink(const JsonReader& object, LinkKind kind) {
  const JsonReader reader = object.As(LinkShape());
  ClusterLink link;
  link.kind = reader.Has("kind") ? kLinkKindChoices[reader.At("kind").Choice()] : kind;
  link.bandwidth = reader.At("bandwidth").Bandwidth();
  link.latency = reader.At("latency").Duration();
  link.efficiency = reader.At("efficiency").Number();
  return link;
}

std::optional<ClusterLink> ReadLinkIf(const JsonReader& object, const std::string& key,
                                      LinkKind kind) {
  if (!object.Has(key)) return std::nullopt;
  return ReadLink(object.At(key), kind);
}

// ---- The node -----------------------------------------------------------------------------------

std::vector<DeviceLanes> ReadLanes(const JsonReader& reader, uint32_t devices) {
  std::vector<DeviceLanes> lanes;
  for (const JsonReader& triple : reader.Elements()) {
    const std::vector<JsonReader> parts = triple.Elements();
    if (parts.size() != 3) triple.Expected("two devices and a number of lanes, such as [0, 1, 2]");
    const auto device = [&](size_t i) {
      return static_cast<uint32_t>(parts[i].Integer(0, int64_t{devices} - 1));
    };
    const uint32_t a = device(0);
    const uint32_t b = device(1);
    if (a == b) triple.Fail("the link leads from a device to itself");
    lanes.push_back({a, b, ReadCount(parts[2])});
  }
  return lanes;
}

NicPlace ReadPlace(const JsonReader& reader) {
  return reader.Choice() == 0 ? NicPlace::kSwitch : NicPlace::kSocket;
}

Host ReadHost(const JsonReader& reader) {
  Host host;
  host.device = ReadLink(reader.At("pcie"), LinkKind::kPcie);
  host.sockets = ReadCount(reader.At("sockets"));
  host.switches = ReadCount(reader.At("pcie_switches"));
  host.nics = ReadCount(reader.At("nics"));
  host.between_sockets = ReadLinkIf(reader, "between_sockets", LinkKind::kSocket);
  host.memory = ReadLinkIf(reader, "memory", LinkKind::kMemory);
  host.root_port = ReadLinkIf(reader, "root_port", LinkKind::kPcie);
  if (host.root_port && host.switches == 0)
    reader.At("root_port")
        .Fail("joins PCIe switches to sockets, but there are no \"pcie_switches\"");
  if (!host.root_port) host.root_port = host.device;
  host.nic = ReadLinkIf(reader, "nic_pcie", LinkKind::kPcie);
  if (!host.nic) host.nic = host.device;
  if (reader.Has("nic_place")) host.nic_place = ReadPlace(reader.At("nic_place"));
  host.nic_ports = ReadCount(reader.At("nic_ports"));
  if (reader.Has("more_nics")) {
    for (const JsonReader& element : reader.At("more_nics").Elements()) {
      const JsonReader nics = element.As(MoreNicsShape());
      MoreNics more;
      more.count = ReadCount(nics.At("count"));
      more.cable = ReadLink(nics.At("cable"), LinkKind::kNetwork);
      more.pcie = ReadLinkIf(nics, "nic_pcie", LinkKind::kPcie).value_or(*host.nic);
      more.place = nics.Has("nic_place") ? ReadPlace(nics.At("nic_place")) : host.nic_place;
      host.more_nics.push_back(more);
    }
  }
  if (reader.Has("nic_ports") && host.nics == 0 && host.more_nics.empty())
    reader.At("nic_ports").Fail("are those of NICs, but there are no \"nics\"");
  return host;
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

NodeSpec ReadNodeObject(const JsonReader& object) {
  const JsonReader reader = object.As(MachineNodeShape());
  const JsonReader kind_reader = reader.At("kind");
  kind_reader.Choice();
  const std::string kind = kind_reader.String();
  NodeSpec node;
  node.devices = ReadCount(reader.At("devices"));
  if (kind == "pcie") {
    if (reader.Has("nvlink"))
      reader.At("nvlink").Fail("a node of kind \"pcie\" has no direct links between devices");
  } else {
    (kind == "nvswitch" ? node.nvswitch : node.lane) =
        ReadLink(reader.At("nvlink"), LinkKind::kNvLink);
  }
  if (kind == "all-to-all") {
    constexpr uint32_t kMostJoined = 1024;  // with as many pairs as a node may have links
    if (node.devices > kMostJoined)
      reader.At("devices").Expected(
          fmt::format("a whole number from 1 to {} where every two are joined", kMostJoined));
    node.lanes = AllToAll(node.devices, 1);
  }
  if (kind == "pairs") {
    if (node.devices % 2 != 0) reader.At("devices").Expected("an even number, for pairs");
    for (uint32_t i = 0; i < node.devices; i += 2) node.lanes.push_back({i, i + 1, 1});
  }
  if (kind == "cube-mesh") {
    if (node.devices != 8) reader.At("devices").Expected("8, for a hybrid cube mesh");
    node.lanes = Dgx1V100Node().lanes;
  }
  if (kind == "links") {
    node.lanes = ReadLanes(reader.At("lanes"), node.devices);
  } else if (reader.Has("lanes")) {
    reader.At("lanes").Fail(fmt::format("a node of kind \"{}\" knows its own links", kind));
  }
  node.cable = ReadLinkIf(reader, "cable", LinkKind::kNetwork);
  if (reader.Has("pcie")) {
    node.host = ReadHost(reader);
    if (node.host->nics > 0 && !node.cable) reader.Fail("the NICs need a \"cable\" to the fabric");
    if (SizeOf(node).wires > kMostNodeWires) RefuseSize(reader, node);
  } else {
    for (const char* key : {"sockets", "pcie_switches", "between_sockets", "root_port", "nics",
                            "nic_pcie", "nic_place", "nic_ports", "more_nics", "memory"})
      if (reader.Has(key)) reader.At(key).Fail("is part of a host, which begins with \"pcie\"");
  }
  return node;
}

// ---- The fabric ---------------------------------------------------------------------------------

RouteChoice ReadRoutingRow(const JsonReader& reader, const FabricChoices& fabric) {
  return fabric.choices[reader.At("routing").Choice()];
}

ClosSpec ReadFatTree(const JsonReader& object, std::string_view kind) {
  const JsonReader reader = object.As(FatTreeShape());
  ClosSpec spec;
  spec.rails = kind == "rails";
  spec.rail_only = kind == "rail-only";
  spec.planes = ReadCount(reader.At("planes"));
  if (reader.Has("rails")) {
    if (!spec.rails) reader.At("rails").Fail("only a fabric of kind \"rails\" has them");
    spec.rail_count = ReadCount(reader.At("rails"));
  }
  if (spec.rail_only && reader.Has("planes"))
    reader.At("planes").Fail("a rail of a fabric of kind \"rail-only\" is a plane already");
  spec.radix = ReadCount(reader.At("radix"));
  if (spec.radix % 2 != 0) reader.At("radix").Expected("an even number of ports");
  if (reader.Has("levels")) spec.levels = ReadCount(reader.At("levels"));
  if (reader.Has("oversubscription"))
    spec.oversubscription = reader.At("oversubscription").Number(1, spec.radix - 1);
  spec.routing = {ReadRoutingRow(reader, ChoicesOfFatTree()), ReadCount(reader.At("queue_pairs"))};
  if (reader.Has("queue_pairs") && spec.routing.choice != RouteChoice::kEcmp)
    reader.At("queue_pairs").Fail("queue pairs are hashed by routing \"ecmp\"");
  spec.cable = ReadLink(reader.At("cable"), LinkKind::kNetwork);
  return spec;
}

DragonflySpec ReadDragonfly(const JsonReader& object) {
  const JsonReader reader = object.As(DragonflyShape());
  DragonflySpec spec;
  uint64_t switches = 1;
  for (const JsonReader& element : reader.At("local").Elements()) {
    const JsonReader dimension = element.As(DragonflyDimensionShape());
    spec.local.push_back(
        {ReadCount(dimension.At("size")), ReadLink(dimension.At("link"), LinkKind::kNetwork)});
    switches *= spec.local.back().size;
    if (switches > 4096) reader.At("local").Fail("a group has more than 4096 switches");
  }
  if (spec.local.empty()) reader.At("local").Expected("at least one dimension");
  spec.machines_per_switch = ReadCount(reader.At("nodes_per_switch"));
  spec.global_cables = ReadCount(reader.At("global_cables"));
  spec.global = ReadLink(reader.At("cable"), LinkKind::kNetwork);
  spec.routing.choice = ReadRoutingRow(reader, ChoicesOfDragonfly());
  return spec;
}

TorusSpec ReadTorus(const JsonReader& object, bool wraps) {
  const JsonReader reader = object.As(TorusShape());
  TorusSpec spec;
  for (const JsonReader& element : reader.At("dimensions").Elements()) {
    const JsonReader dimension = element.As(TorusDimensionShape());
    spec.dimensions.push_back({ReadCount(dimension.At("size")),
                               dimension.Has("wraps") ? dimension.At("wraps").Bool() : wraps,
                               ReadLink(dimension.At("link"), LinkKind::kNetwork)});
  }
  if (spec.dimensions.empty()) reader.At("dimensions").Expected("at least one dimension");
  return spec;
}

FabricSpec ReadFabric(const JsonReader& reader) {
  if (!reader.IsObject()) reader.Expected("an object that describes a fabric");
  const std::vector<std::string> kinds = {"switch",    "fat-tree", "rails", "rail-only",
                                          "dragonfly", "torus",    "mesh"};
  const std::string kind = kinds[reader.At("kind").Choice(kinds)];
  if (kind == "fat-tree" || kind == "rails" || kind == "rail-only")
    return ReadFatTree(reader, kind);
  if (kind == "dragonfly") return ReadDragonfly(reader);
  if (kind == "torus" || kind == "mesh") return ReadTorus(reader, kind == "torus");
  reader.As(SwitchFabricShape());
  return OneSwitch();
}

// The node of a preset with its standard parameters; its device unless the user names another.
NodeSpec NodeOfPreset(const JsonReader& reader, std::string* device, std::string* plugin) {
  const ClusterPreset& preset = FindPreset(reader.String(), reader.place());
  *device = preset.device;
  const MachineSpec spec = StandardMachine(preset);
  *plugin = spec.network_plugin;
  return spec.node;
}

}  // namespace

std::unique_ptr<Cluster> ReadCompactForm(const JsonReader& object) {
  const JsonReader node = object.At("node");
  const bool is_preset = node.IsString();
  if (!is_preset && !node.IsObject())
    node.Expected("the name of a preset or an object that describes a node");
  const JsonReader reader = object.As(CompactClusterShape(), is_preset ? kPresetNode : "");

  MachineSpec spec;
  spec.name = reader.At("name").String();
  if (spec.name.empty()) reader.At("name").Expected("a name");
  std::string preset_device;
  spec.node =
      is_preset ? NodeOfPreset(node, &preset_device, &spec.network_plugin) : ReadNodeObject(node);
  if (reader.Has("network_plugin")) spec.network_plugin = reader.At("network_plugin").String();
  const JsonReader& place_of_device = is_preset ? object : node;
  const DeviceSpec device = is_preset && !reader.Has("device")
                                ? FindDevice(preset_device)
                                : ReadDevice(place_of_device.At("device"));
  spec.nodes = ReadCount(reader.At("nodes"));
  if (reader.Has("fabric")) spec.fabric = ReadFabric(reader.At("fabric"));
  if (reader.Has("notes"))
    for (const JsonReader& note : reader.At("notes").Elements())
      spec.notes.push_back(note.String());
  constexpr uint64_t kMostDevices = 1u << 22;
  if (uint64_t{spec.nodes} * spec.node.devices > kMostDevices)
    reader.At("nodes").Fail(
        fmt::format("the cluster would have more than {} devices", kMostDevices));
  try {
    return BuildMachine(spec, device);
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace rehearse
