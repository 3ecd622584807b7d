#include "topology/files/compact_form.h"

#include <string>

#include <fmt/format.h>

#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"
#include "topology/files/fabric_file.h"
#include "topology/files/node_file.h"
#include "topology/presets/standard_machine.h"

namespace rehearse {
namespace {

constexpr const char* kPresetNode = "where \"node\" is a preset";

const Fields<MachineSpec>& CompactFields() {
  static const Fields<MachineSpec> fields(
      "cluster: compact", "A node, how many of them, and the fabric between them.",
      {SchemaForEditors(),
       {"name", &MachineSpec::name, AName(), Required(), "what results call it", "\"mine\""},
       {"node",
        Either({AText("name of a preset, whose node is taken"), ObjectOf(MachineNodeShape)}),
        Required(), "what a machine is made of", "\"dgx-a100\""},
       {"device", DeviceChoiceShape(), Optional("the preset's"), "replaces the node's devices",
        "\"a100-80g\"", kPresetNode},
       {"nodes", &MachineSpec::nodes, AWhole(1, kMostCounted), Required(), "how many nodes", "32"},
       {"fabric", FabricShape(), Optional("none, for one node"), "what joins the nodes",
        R"({"kind": "fat-tree", "radix": 64, "cable": {"bandwidth": "50GBps", "latency": "0us"}})"},
       NetworkPluginRow(&MachineSpec::network_plugin, "ib, or that of the node's preset"),
       NotesRow(&MachineSpec::notes),
       MeasuredAndEdited<MachineSpec>()});
  return fields;
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

const ObjectShape& CompactClusterShape() { return CompactFields().shape(); }

std::unique_ptr<Cluster> ReadCompactForm(const JsonReader& object) {
  const JsonReader node = object.At("node");
  const bool is_preset = node.IsString();
  if (!is_preset && !node.IsObject())
    node.Expected("the name of a preset or an object that describes a node");
  const JsonReader reader = object.As(CompactClusterShape(), is_preset ? kPresetNode : "");

  MachineSpec spec;
  std::string preset_device;
  spec.node = is_preset ? NodeOfPreset(node, &preset_device, &spec.network_plugin) : ReadNode(node);
  CompactFields().ReadInto(reader, &spec);
  const JsonReader& place_of_device = is_preset ? object : node;
  const DeviceSpec device = is_preset && !reader.Has("device")
                                ? FindDevice(preset_device)
                                : ReadDevice(place_of_device.At("device"));
  if (reader.Has("fabric")) spec.fabric = ReadFabric(reader.At("fabric"));
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
