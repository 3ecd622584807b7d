#include "topology/files/compact_form.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

// What the object says, read, but for its device.
struct CompactObject {
  MachineSpec machine;
  JsonReader reader;                 // as the table has it
  std::optional<JsonReader> device;  // nothing: that of the preset whose node it has
  std::string preset_device;
};

CompactObject ReadMachineObject(const JsonReader& object) {
  const JsonReader node = object.At("node");
  const bool is_preset = node.IsString();
  if (!is_preset && !node.IsObject())
    node.Expected("the name of a preset or an object that describes a node");
  CompactObject said{.machine = {},
                     .reader = object.As(CompactClusterShape(), is_preset ? kPresetNode : ""),
                     .device = std::nullopt,
                     .preset_device = ""};
  if (is_preset) {
    // Its node with standard parameters.
    const ClusterPreset& preset = FindPreset(node.String(), node.place());
    const MachineSpec standard = StandardMachine(preset);
    said.preset_device = preset.device;
    said.machine.node = standard.node;
    said.machine.network_plugin = standard.network_plugin;
  } else {
    said.machine.node = ReadNode(node);
  }
  CompactFields().ReadInto(said.reader, &said.machine);
  if (!is_preset || said.reader.Has("device"))
    said.device = (is_preset ? object : node).At("device");
  return said;
}

}  // namespace

const ObjectShape& CompactClusterShape() { return CompactFields().shape(); }

std::unique_ptr<Cluster> ReadCompactForm(const JsonReader& object) {
  CompactObject said = ReadMachineObject(object);
  const JsonReader& reader = said.reader;
  MachineSpec& spec = said.machine;
  const DeviceSpec device = said.device ? ReadDevice(*said.device) : FindDevice(said.preset_device);
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

nlohmann::ordered_json CompactForm(const MachineSpec& machine,
                                   const nlohmann::ordered_json& device) {
  nlohmann::ordered_json written;
  CompactFields().Write(machine, &written);
  written["node"] = NodeToJson(machine.node, device);
  if (machine.fabric) written["fabric"] = FabricToJson(*machine.fabric);
  nlohmann::ordered_json json;
  for (const JsonKey& row : CompactClusterShape().keys)
    if (written.contains(row.name)) json[row.name] = std::move(written[row.name]);
  return json;
}

nlohmann::ordered_json CompactFormAgain(const JsonReader& object) {
  CompactObject said = ReadMachineObject(object);
  if (said.reader.Has("fabric")) said.machine.fabric = ReadFabric(said.reader.At("fabric"));
  return CompactForm(said.machine, said.device ? nlohmann::ordered_json(said.device->value())
                                               : nlohmann::ordered_json(said.preset_device));
}

}  // namespace rehearse
