#include "topology/files/cluster_shapes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "topology/cluster/cluster.h"
#include "topology/files/calibration.h"
#include "topology/files/device_file.h"
#include "topology/files/edits.h"
#include "topology/files/exact_text.h"
#include "topology/files/given_rings.h"
#include "topology/files/preset_changes.h"

namespace rehearse {
namespace {

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

Field<ClusterLink> LinkKindRow(Presence presence, const char* about) {
  return {"kind", &ClusterLink::kind, OneNamedOf(kLinkKindChoices), std::move(presence), about};
}

Field<ClusterLink> LinkBandwidthRow(const char* example) {
  return {"bandwidth", &ClusterLink::bandwidth,       AnExactBandwidth(),
          Required(),  "nominal bandwidth, each way", example};
}

Field<ClusterLink> LinkLatencyRow(const char* example) {
  return {"latency",  &ClusterLink::latency,       AnExactDurationUpTo(kLongestLatency),
          Required(), "latency of the first byte", example};
}

Field<ClusterLink> LinkEfficiencyRow() {
  return {"efficiency",
          &ClusterLink::efficiency,
          ANumberAbove(0, 1),
          Usual(),
          "share of the nominal bandwidth that one transfer gets",
          "0.8"};
}

// Its own parameters come first, also where a mistyped key is as near to another.
ObjectShape ShapeOfPreset(std::string name, std::vector<std::string> presets,
                          std::vector<JsonKey> parameters) {
  ObjectShape shape = {
      std::move(name),
      "A known cluster, with changes (rehearse list clusters shows its parameters).",
      {{"preset", OneOf(std::move(presets)), Required(), "which cluster", "\"perlmutter\""},
       {"device", DeviceChoiceShape(), Optional("the preset's"), "replaces all devices",
        "\"a100-80g\""}}};
  for (std::vector<JsonKey>& keys : std::vector<std::vector<JsonKey>>{
           std::move(parameters), PresetChangeKeys(), MeasuredAndEditedKeys()})
    for (JsonKey& key : keys) shape.keys.push_back(std::move(key));
  return shape;
}

JsonKey RowOf(const PresetParameter& parameter) {
  const std::string usual = std::to_string(parameter.standard);
  return {parameter.name, AWhole(parameter.minimum, parameter.maximum), Default(usual),
          parameter.meaning, usual};
}

}  // namespace

const ObjectShape& PresetClusterShape(const ClusterPreset& preset) {
  static std::mutex mutex;
  static std::map<std::string, ObjectShape> shapes;  // whose addresses stay
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = shapes.try_emplace(preset.name);
  if (is_new) {
    std::vector<JsonKey> parameters;
    for (const PresetParameter& parameter : preset.parameters)
      parameters.push_back(RowOf(parameter));
    place->second = ShapeOfPreset("cluster: " + preset.name, {preset.name}, std::move(parameters));
  }
  return place->second;
}

const ObjectShape& PresetClusterShape() {
  static const ObjectShape shape = [] {
    std::vector<std::string> names;
    for (const ClusterPreset& preset : ClusterPresets()) names.push_back(preset.name);
    std::vector<JsonKey> parameters;
    for (const ClusterPreset& preset : ClusterPresets()) {
      for (const PresetParameter& parameter : preset.parameters) {
        if (std::any_of(parameters.begin(), parameters.end(),
                        [&](const JsonKey& key) { return key.name == parameter.name; }))
          continue;
        JsonKey row = RowOf(parameter);
        row.presence = Optional("the preset's");
        parameters.push_back(std::move(row));
      }
    }
    return ShapeOfPreset("cluster: preset", std::move(names), std::move(parameters));
  }();
  return shape;
}

const Fields<ClusterLink>& LinkFields() {
  static const Fields<ClusterLink> fields(
      "link", "A link, the same both ways.",
      {LinkKindRow(Optional("what its place suggests"), "of which technology"),
       LinkBandwidthRow("\"50GBps\""), LinkEfficiencyRow(), LinkLatencyRow("\"3.5us\"")});
  return fields;
}

void WriteLinkAt(LinkKind suggested, const ClusterLink& link, nlohmann::ordered_json* to) {
  nlohmann::ordered_json written;
  LinkFields().Write(link, &written);
  written.erase("kind");
  if (link.kind != suggested) *to = {{"kind", Name(link.kind)}};
  to->update(written);
}

FieldList<ClusterLink> LinkRowsOfGraph() {
  return {LinkKindRow(Required(), "its technology"), LinkBandwidthRow("\"300GBps\""),
          LinkLatencyRow("\"1us\""), LinkEfficiencyRow()};
}

FieldShape ANetworkPlugin() {
  std::vector<std::string> names;
  for (const NetworkPlugin& plugin : KnownNetworkPlugins()) names.push_back(plugin.name);
  return OneOf(std::move(names));
}

std::vector<JsonKey> MeasuredAndEditedKeys() {
  return {CalibrationRow(), DevicePointsRow(), RingsRow(), EditsRow()};
}

}  // namespace rehearse
