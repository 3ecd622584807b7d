#include "topology/files/compact_form.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "topology/files/graph_file.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

constexpr uint32_t kMost = 1u << 20;  // of anything that is counted

uint32_t ReadCount(const JsonReader& reader, uint32_t minimum = 1, uint32_t maximum = kMost) {
  return static_cast<uint32_t>(reader.Integer(minimum, maximum));
}

uint32_t ReadCountOr(const JsonReader& object, const std::string& key, uint32_t standard,
                     uint32_t minimum) {
  return object.Has(key) ? ReadCount(object.At(key), minimum) : standard;
}

ClusterLink ReadLink(const JsonReader& reader, LinkKind kind) {
  reader.AllowKeys({"kind", "bandwidth", "efficiency", "latency"});
  ClusterLink link;
  link.kind = kind;
  if (reader.Has("kind")) {
    constexpr std::array kKinds = {LinkKind::kNvLink, LinkKind::kXgmi,    LinkKind::kPcie,
                                   LinkKind::kSocket, LinkKind::kNetwork, LinkKind::kMemory};
    std::vector<std::string> names;
    for (const LinkKind known : kKinds) names.emplace_back(Name(known));
    link.kind = kKinds[reader.At("kind").Choice(names)];
  }
  link.bandwidth = reader.At("bandwidth").Bandwidth();
  link.latency = reader.At("latency").Duration();
  if (link.latency > kLongestLatency)
    reader.At("latency").Expected(fmt::format("at most {} s", kLongestLatency.value()));
  if (reader.Has("efficiency")) {
    link.efficiency = reader.At("efficiency").Number(0, 1);
    if (link.efficiency == 0) reader.At("efficiency").Expected("a number above 0 and at most 1");
  }
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
    const uint32_t a = ReadCount(parts[0], 0, devices - 1);
    const uint32_t b = ReadCount(parts[1], 0, devices - 1);
    if (a == b) triple.Fail("the link leads from a device to itself");
    lanes.push_back({a, b, ReadCount(parts[2])});
  }
  return lanes;
}

Host ReadHost(const JsonReader& reader) {
  Host host;
  host.device = ReadLink(reader.At("pcie"), LinkKind::kPcie);
  host.sockets = ReadCountOr(reader, "sockets", 1, 1);
  host.switches = ReadCountOr(reader, "pcie_switches", 0, 0);
  host.nics = ReadCountOr(reader, "nics", 0, 0);
  host.between_sockets = ReadLinkIf(reader, "between_sockets", LinkKind::kSocket);
  host.memory = ReadLinkIf(reader, "memory", LinkKind::kMemory);
  host.root_port = ReadLinkIf(reader, "root_port", LinkKind::kPcie);
  if (host.root_port && host.switches == 0)
    reader.At("root_port")
        .Fail("joins PCIe switches to sockets, but there are no \"pcie_switches\"");
  if (!host.root_port) host.root_port = host.device;
  host.nic = ReadLinkIf(reader, "nic_pcie", LinkKind::kPcie);
  if (!host.nic) host.nic = host.device;
  if (reader.Has("nic_place"))
    host.nic_place = reader.At("nic_place").Choice({"switch", "socket"}) == 0 ? NicPlace::kSwitch
                                                                              : NicPlace::kSocket;
  return host;
}

// Names the count that makes the node too large.
[[noreturn]] void RefuseSize(const JsonReader& reader, const NodeSpec& node) {
  NodeSpec alone = node;
  alone.host->between_sockets.reset();
  const bool is_by_pairs = SizeOf(alone).wires <= kMostNodeWires;
  constexpr uint32_t kMostSockets = 1024;  // whose pairs are as many as a node's links may be
  if (is_by_pairs && node.host->sockets > kMostSockets)
    reader.At("sockets").Expected(
        fmt::format("a whole number from 1 to {} where every two are joined", kMostSockets));
  reader.Fail(fmt::format("found a node of {} links, expected at most {}", SizeOf(node).wires,
                          kMostNodeWires));
}

NodeSpec ReadNodeObject(const JsonReader& reader) {
  reader.AllowKeys({"kind", "devices", "device", "nvlink", "lanes", "pcie", "sockets",
                    "pcie_switches", "between_sockets", "root_port", "nics", "nic_pcie",
                    "nic_place", "memory", "cable"});
  const std::vector<std::string> kinds = {"nvswitch",  "all-to-all", "pairs",
                                          "cube-mesh", "links",      "pcie"};
  const std::string kind = kinds[reader.At("kind").Choice(kinds)];
  NodeSpec node;
  node.devices = ReadCount(reader.At("devices"), 1, 4096);
  if (kind == "pcie") {
    if (reader.Has("nvlink"))
      reader.At("nvlink").Fail("a node of kind \"pcie\" has no direct links between devices");
  } else {
    (kind == "nvswitch" ? node.nvswitch : node.lane) =
        ReadLink(reader.At("nvlink"), LinkKind::kNvLink);
  }
  if (kind == "all-to-all") {
    constexpr uint32_t kMostJoined = 1024;  // whose pairs are as many as a node's links may be
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
                            "nic_pcie", "nic_place", "memory"})
      if (reader.Has(key)) reader.At(key).Fail("is part of a host, which begins with \"pcie\"");
  }
  return node;
}

// ---- The fabric ---------------------------------------------------------------------------------

ClosSpec ReadFatTree(const JsonReader& reader, bool rails) {
  reader.AllowKeys({"kind", "radix", "levels", "oversubscription", "cable"});
  ClosSpec spec;
  spec.rails = rails;
  spec.radix = ReadCount(reader.At("radix"), 4, 4096);
  if (spec.radix % 2 != 0) reader.At("radix").Expected("an even number of ports");
  if (reader.Has("levels")) spec.levels = ReadCount(reader.At("levels"), 1, 6);
  if (reader.Has("oversubscription"))
    spec.oversubscription = reader.At("oversubscription").Number(1, spec.radix - 1);
  spec.cable = ReadLink(reader.At("cable"), LinkKind::kNetwork);
  return spec;
}

DragonflySpec ReadDragonfly(const JsonReader& reader) {
  reader.AllowKeys({"kind", "local", "nodes_per_switch", "global_cables", "cable"});
  DragonflySpec spec;
  uint64_t switches = 1;
  for (const JsonReader& dimension : reader.At("local").Elements()) {
    dimension.AllowKeys({"size", "link"});
    spec.local.push_back({ReadCount(dimension.At("size"), 1, 4096),
                          ReadLink(dimension.At("link"), LinkKind::kNetwork)});
    switches *= spec.local.back().size;
    if (switches > 4096) reader.At("local").Fail("a group has more than 4096 switches");
  }
  if (spec.local.empty()) reader.At("local").Expected("one dimension at least");
  spec.machines_per_switch = ReadCount(reader.At("nodes_per_switch"), 1, 4096);
  spec.global_cables = ReadCount(reader.At("global_cables"));
  spec.global = ReadLink(reader.At("cable"), LinkKind::kNetwork);
  return spec;
}

TorusSpec ReadTorus(const JsonReader& reader, bool wraps) {
  reader.AllowKeys({"kind", "dimensions"});
  TorusSpec spec;
  for (const JsonReader& dimension : reader.At("dimensions").Elements()) {
    dimension.AllowKeys({"size", "link", "wraps"});
    spec.dimensions.push_back({ReadCount(dimension.At("size")),
                               dimension.Has("wraps") ? dimension.At("wraps").Bool() : wraps,
                               ReadLink(dimension.At("link"), LinkKind::kNetwork)});
  }
  if (spec.dimensions.empty()) reader.At("dimensions").Expected("one dimension at least");
  return spec;
}

FabricSpec ReadFabric(const JsonReader& reader) {
  if (!reader.IsObject()) reader.Expected("an object that describes a fabric");
  const std::vector<std::string> kinds = {"switch",    "fat-tree", "rails",
                                          "dragonfly", "torus",    "mesh"};
  const std::string kind = kinds[reader.At("kind").Choice(kinds)];
  if (kind == "fat-tree" || kind == "rails") return ReadFatTree(reader, kind == "rails");
  if (kind == "dragonfly") return ReadDragonfly(reader);
  if (kind == "torus" || kind == "mesh") return ReadTorus(reader, kind == "torus");
  reader.AllowKeys({"kind"});
  return OneSwitch();
}

// The node of a preset with its standard parameters; its device unless the user names another.
NodeSpec NodeOfPreset(const JsonReader& reader, std::string* device) {
  const ClusterPreset& preset = FindPreset(reader.String(), reader.place());
  std::map<std::string, uint32_t> parameters;
  for (const PresetParameter& parameter : preset.parameters)
    parameters[parameter.name] = parameter.standard;
  *device = preset.device;
  return preset.describe(parameters).node;
}

}  // namespace

std::unique_ptr<Cluster> ReadCompactForm(const JsonReader& reader) {
  const JsonReader node = reader.At("node");
  const bool is_preset = node.IsString();
  if (!is_preset && !node.IsObject())
    node.Expected("the name of a preset or an object that describes a node");
  std::vector<std::string> keys = {"name",  "node",        "nodes", "fabric",
                                   "notes", "calibration", "edits"};
  if (is_preset) keys.emplace_back("device");
  reader.AllowKeys(keys);

  MachineSpec spec;
  spec.name = reader.At("name").String();
  if (spec.name.empty()) reader.At("name").Expected("a name");
  std::string preset_device;
  spec.node = is_preset ? NodeOfPreset(node, &preset_device) : ReadNodeObject(node);
  const JsonReader& place_of_device = is_preset ? reader : node;
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
