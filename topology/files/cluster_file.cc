#include "topology/files/cluster_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "sim/base/file_kind.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "sim/base/json_parse.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_shapes.h"
#include "topology/files/compact_form.h"
#include "topology/files/device_file.h"
#include "topology/files/device_points_file.h"
#include "topology/files/edits.h"
#include "topology/files/given_rings.h"
#include "topology/files/graph_file.h"
#include "topology/files/preset_changes.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

// Where a name's changes begin: the first colon that a key and '=' follow; npos if there is none.
size_t ColonOf(const std::string& text) {
  for (size_t colon = text.find(':'); colon != std::string::npos;
       colon = text.find(':', colon + 1)) {
    // "my:files/a.json" is a file, "perlmutter:nods" a preset with a mistake in it.
    const size_t end = text.find_first_of("=/:", colon + 1);
    if (end == std::string::npos || text[end] == '=') return colon;
  }
  return std::string::npos;
}

uint32_t ParseParameter(const std::string& key, const std::string& text, const Place& place) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end)
    throw Error(place, fmt::format("\"{}\" is \"{}\", expected a whole number", key, text));
  return value;
}

// "perlmutter:nodes=4,device=a100-80g": what is changed, and how.
struct ChangedText {
  std::string name;  // of a preset or a file
  std::vector<std::pair<std::string, std::string>> changes;
};

ChangedText SplitChanges(const std::string& text, const Place& place) {
  const size_t colon = ColonOf(text);
  ChangedText split{text.substr(0, colon), {}};
  if (!IsClusterFile(text)) FindPreset(split.name, place);  // said before wrong changes
  size_t begin = colon == std::string::npos ? text.size() + 1 : colon + 1;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string change = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = change.find('=');
    if (equals == std::string::npos)
      throw Error(place, fmt::format("found {} in {}, expected a change such as \"nodes=4\"",
                                     QuotedJson(change), QuotedJson(text)));
    const std::string key = change.substr(0, equals);
    for (const auto& [earlier, value] : split.changes) {
      if (key == earlier)
        throw Error(place,
                    fmt::format("{} appears twice in {}", QuotedJson(key), QuotedJson(text)));
    }
    split.changes.emplace_back(key, change.substr(equals + 1));
  }
  return split;
}

// A preset with its changes as an object, in which other values can be set.
JsonDocument PresetDocument(const std::string& text, const Place& place,
                            const ReadOptions& options = {}) {
  const ChangedText preset = SplitChanges(text, place);
  nlohmann::json json = {{"preset", preset.name}};
  for (const auto& [key, value] : preset.changes) {
    if (key == "device") {
      json[key] = value;
    } else if (!IsPresetChange(key)) {
      json[key] = ParseParameter(key, value, place);
    }
  }
  JsonDocument document = JsonDocument::FromValue(std::move(json), place, options);
  for (const auto& [key, value] : preset.changes)
    if (IsPresetChange(key)) document.Set(fmt::format("{}={}", key, value), place);
  return document;
}

// As JsonDocument::Set() takes them.
std::vector<std::string> Assignments(const ChangedText& file) {
  std::vector<std::string> assignments;
  assignments.reserve(file.changes.size());
  for (const auto& [key, value] : file.changes)
    assignments.push_back(fmt::format("{}={}", key, value));
  return assignments;
}

// A file with its changes: "my.json:nodes=32".
JsonDocument ChangedFile(const std::string& text, const ReadOptions& options = {}) {
  const ChangedText file = SplitChanges(text, Place());
  JsonDocument document = JsonDocument::FromFile(file.name, options);
  for (const std::string& assignment : Assignments(file)) document.Set(assignment, {text, 0, ""});
  if (options.record != nullptr) {
    std::vector<JsonChange>& changes = options.record->changes;
    changes.insert(changes.end(), document.changes().begin(), document.changes().end());
  }
  return document;
}

// {"preset": "perlmutter", "nodes": 4, "device": "a100-80g"}.
struct PresetObject {
  explicit PresetObject(const JsonReader& object)
      : name(object.At("preset")),
        preset(FindPreset(name.String(), name.place())),
        reader(object.As(PresetClusterShape(preset))) {
    for (const PresetParameter& parameter : preset.parameters)
      parameters[parameter.name] = reader.At(parameter.name).Whole<uint32_t>();
  }

  JsonReader name;
  const ClusterPreset& preset;
  JsonReader reader;
  std::map<std::string, uint32_t> parameters;
};

std::unique_ptr<Cluster> ReadPresetObject(const JsonReader& object) {
  const PresetObject given(object);
  std::optional<DeviceSpec> device;
  if (given.reader.Has("device")) device = ReadDevice(given.reader.At("device"));
  return BuildPreset(given.preset.name, given.parameters, given.name.place(),
                     device ? &*device : nullptr, ReadPresetChanges(given.reader));
}

std::unique_ptr<Cluster> ReadPresetText(const std::string& text, const Place& place) {
  const ChangedText preset = SplitChanges(text, place);
  for (const auto& [key, value] : preset.changes)
    if (IsPresetChange(key)) return ReadPresetObject(PresetDocument(text, place).Root());
  std::map<std::string, uint32_t> parameters;
  std::optional<DeviceSpec> device;
  for (const auto& [key, value] : preset.changes) {
    if (key != "device") {
      parameters.emplace(key, ParseParameter(key, value, place));
      continue;
    }
    try {
      device = FindDevice(value);
    } catch (const Error& error) {
      throw Error(place, error.what());
    }
  }
  return BuildPreset(preset.name, parameters, place, device ? &*device : nullptr);
}

std::unique_ptr<Cluster> ReadClusterObject(const JsonReader& reader);

// The drawn cluster's figures on the wiring of the cluster that it was drawn from, which knows its
// structure.
std::unique_ptr<Cluster> RoutedLike(const Cluster& drawn, const JsonReader& reader) {
  const auto whole = reader.IsString() ? ReadPresetText(reader.String(), reader.place())
                                       : ReadClusterObject(reader);
  const std::string difference = DifferenceInWiring(*drawn.wiring(), *whole->wiring());
  if (!difference.empty())
    reader.Fail(
        fmt::format("this is not the wiring of {}: {}; without \"routed_as\" routes are "
                    "searched",
                    reader.IsString() ? reader.String() : "what stands here", difference));
  return std::make_unique<Cluster>(whole->With(drawn.figures()));
}

std::unique_ptr<Cluster> ReadDrawn(const JsonReader& reader) {
  auto cluster = ReadGraph(reader);
  return reader.Has("routed_as") ? RoutedLike(*cluster, reader.At("routed_as"))
                                 : std::move(cluster);
}

// A cluster that lists its vertices has no nodes whose number or parts could be changed: --set is
// told so, rather than that the file's own keys are unknown.
void RefuseMixedForms(const JsonReader& reader) {
  if (!reader.Has("vertices")) return;
  for (const char* key : {"preset", "node", "nodes", "fabric"}) {
    if (!reader.Has(key)) continue;
    reader.At(key).Fail(fmt::format(
        "this cluster lists its vertices and links one by one, so it has no \"{}\"; expected "
        "\"edits\" of its links, or a cluster given as a preset or as \"node\" and \"fabric\"",
        key));
  }
}

std::unique_ptr<Cluster> ReadClusterObject(const JsonReader& reader) {
  if (!reader.IsObject())
    reader.Expected("a cluster: an object with \"preset\", with \"node\" or with \"vertices\"");
  RefuseOtherKinds(reader, FileKind::kCluster);
  if (!reader.Has("preset") && !reader.Has("node") && !reader.Has("vertices"))
    reader.Fail(
        "a cluster has \"preset\", or \"node\" and \"fabric\", or \"vertices\" and \"links\"");
  RefuseMixedForms(reader);
  auto cluster = reader.Has("preset") ? ReadPresetObject(reader)
                 : reader.Has("node") ? ReadCompactForm(reader)
                                      : ReadDrawn(reader);
  if (reader.Has("calibration"))
    cluster = ApplyCalibration(*cluster, ReadCalibration(reader.At("calibration")));
  if (reader.Has("device_points"))
    cluster = ApplyDevicePoints(*cluster, ReadDevicePoints(reader.At("device_points")));
  if (reader.Has("rings")) cluster = ApplyRings(*cluster, reader.At("rings"));
  if (!reader.Has("edits")) return cluster;
  return ApplyEdits(*cluster, ReadEdits(reader.At("edits")));
}

nlohmann::ordered_json FormOfPreset(const JsonReader& object) {
  const PresetObject given(object);
  const nlohmann::ordered_json device =
      given.reader.Has("device") ? nlohmann::ordered_json(given.reader.At("device").value())
                                 : nlohmann::ordered_json(given.preset.device);
  const MachineSpec machine = DescribePreset(given.preset.name, given.parameters,
                                             given.name.place(), ReadPresetChanges(given.reader));
  return CompactForm(machine, device);
}

}  // namespace

std::string DifferenceInWiring(const Wiring& a, const Wiring& b) {
  if (a.name != b.name) return fmt::format("its name is \"{}\", not \"{}\"", a.name, b.name);
  if (a.vertex_count() != b.vertex_count())
    return fmt::format("it has {} vertices, not {}", a.vertex_count(), b.vertex_count());
  for (VertexId i = 0; i < a.vertex_count(); ++i) {
    const Vertex x = a.VertexAt(i);
    const Vertex y = b.VertexAt(i);
    if (x.name != y.name || x.kind != y.kind || x.node != y.node)
      return fmt::format("vertex {} is not {} \"{}\" of \"{}\"", i, Name(y.kind), y.name, y.node);
  }
  if (a.link_count() != b.link_count())
    return fmt::format("it has {} links, not {}", a.link_count(), b.link_count());
  for (size_t i = 0; i < a.link_count(); ++i) {
    const WiredLink x = a.LinkAt(i);
    const WiredLink y = b.LinkAt(i);
    if (x.from != y.from || x.to != y.to || x.kind != y.kind)
      return fmt::format("link {} is not of kind {} from \"{}\" to \"{}\"", i, Name(y.kind),
                         b.VertexAt(y.from).name, b.VertexAt(y.to).name);
  }
  return "";
}

std::optional<nlohmann::ordered_json> AsCompactForm(const JsonReader& object) {
  for (const char* key : {"vertices", "calibration", "device_points", "rings"})
    if (object.Has(key)) return std::nullopt;
  nlohmann::ordered_json form =
      object.Has("preset") ? FormOfPreset(object) : CompactFormAgain(object);
  if (object.Has("edits")) form["edits"] = object.At("edits").value();
  return form;
}

JsonShape ClusterObjectShape() {
  return Either(
      {ObjectOf(PresetClusterShape), ObjectOf(CompactClusterShape), ObjectOf(GraphClusterShape)});
}

JsonShape ClusterShape() {
  return Either({AText("a preset, a preset with changes, or the path of a cluster file"),
                 ClusterObjectShape()});
}

bool IsClusterFile(const std::string& text) {
  const std::string name = text.substr(0, ColonOf(text));
  return name.find('/') != std::string::npos || name.ends_with(".json") ||
         name.ends_with(".json.gz") || name == kStandardInput;
}

std::unique_ptr<Cluster> ReadCluster(const JsonReader& reader) {
  if (!reader.IsString()) return ReadClusterObject(reader);
  const std::string& text = reader.Text();
  if (!IsClusterFile(text) && !reader.HasChanges()) return ReadPresetText(text, reader.place());
  if (!IsClusterFile(text)) {
    JsonDocument document = PresetDocument(text, reader.place(), reader.FilesOfDocument());
    reader.Change(&document);
    return ReadClusterObject(document.Root());
  }
  const ChangedText file = SplitChanges(text, reader.place());
  JsonDocument document = reader.Open(file.name);
  reader.Change(&document, Assignments(file));
  return ReadClusterObject(document.Root());
}

std::unique_ptr<Cluster> ReadClusterArgument(const std::string& text, const ReadOptions& options) {
  if (!IsClusterFile(text)) return ReadPresetText(text, Place());
  const JsonDocument document = ChangedFile(text, options);
  return ReadClusterObject(document.Root());
}

nlohmann::json ClusterObjectOf(const std::string& text) { return ClusterDocument(text).value(); }

JsonDocument ClusterDocument(const std::string& text) {
  return IsClusterFile(text) ? ChangedFile(text) : PresetDocument(text, Place());
}

}  // namespace rehearse
