#include "scenarios/playing/first_scenario.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/prepare.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/readers/strategy_reader.h"
#include "scenarios/readers/strategy_shapes.h"
#include "scenarios/readers/training_reader.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

const StrategyKind& FindStrategy(const std::string& name) {
  std::vector<std::string> names;
  for (const StrategyKind& kind : StrategyKinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw Error(fmt::format("unknown strategy \"{}\"{}", name, KnownNames(name, names)));
}

const ModelPreset& FindModel(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw Error(
      fmt::format("unknown model \"{}\"{}", name, KnownNames(name, names, "rehearse list models")));
}

// ---- The mesh -----------------------------------------------------------------------------------

bool IsAxis(const JsonKey& row) {
  return row.shape.type == JsonType::kWhole && row.shape.most == kMostMeshRanks;
}

// How many ranks the size of an axis stands for.
uint32_t RanksOf(const std::string& axis, uint32_t size) {
  return axis == "q" ? size * size : size;
}

using Mesh = std::vector<std::pair<std::string, uint32_t>>;

void Deal(const std::vector<std::string>& axes, uint32_t ranks, Mesh mesh,
          std::vector<Mesh>* meshes) {
  if (mesh.size() == axes.size()) {
    if (ranks == 1) meshes->push_back(std::move(mesh));
    return;
  }
  const std::string& axis = axes[mesh.size()];
  for (uint32_t size = 1; RanksOf(axis, size) <= ranks; ++size) {
    if (ranks % RanksOf(axis, size) != 0) continue;
    Mesh more = mesh;
    more.emplace_back(axis, size);
    Deal(axes, ranks / RanksOf(axis, size), std::move(more), meshes);
  }
}

// Ranks that hold the same weights: what a mesh does not split.
uint32_t Copies(const Mesh& mesh) {
  uint32_t copies = 1;
  for (const auto& [axis, size] : mesh) {
    if (axis == "data" || axis == "replicas") copies *= size;
  }
  return copies;
}

// Ranks that share a product, which communicate most.
uint32_t Sharers(const Mesh& mesh) {
  uint32_t sharers = 1;
  for (const auto& [axis, size] : mesh) {
    if (axis != "data" && axis != "replicas" && axis != "depth" && axis != "shard")
      sharers *= RanksOf(axis, size);
  }
  return sharers;
}

std::vector<Mesh> MeshesOf(const ObjectShape& table, const Cluster& cluster) {
  const uint32_t ranks = cluster.device_count();
  const uint32_t of_node = ranks / std::max(1u, cluster.node_count());
  if (table.Find("nodes") != nullptr) return {{{"nodes", ranks / of_node}, {"gpus", of_node}}};
  std::vector<std::string> axes;
  for (const JsonKey& row : table.keys) {
    if (IsAxis(row) && row.only != kXyz) axes.push_back(row.name);
  }
  std::vector<Mesh> meshes;
  Deal(axes, ranks, {}, &meshes);
  std::stable_sort(meshes.begin(), meshes.end(), [&](const Mesh& a, const Mesh& b) {
    const bool a_leaves = Sharers(a) > of_node;
    const bool b_leaves = Sharers(b) > of_node;
    if (a_leaves != b_leaves) return b_leaves;
    if (Copies(a) != Copies(b)) return Copies(a) > Copies(b);
    return Sharers(a) < Sharers(b);
  });
  // Those with as many copies take much the same memory: there is no use in trying all of them.
  constexpr size_t kTriesAlike = 12;
  std::map<std::pair<bool, uint32_t>, size_t> alike;
  std::erase_if(meshes, [&](const Mesh& mesh) {
    return ++alike[{Sharers(mesh) > of_node, Copies(mesh)}] > kTriesAlike;
  });
  return meshes;
}

// ---- The file -----------------------------------------------------------------------------------

Json ValueOf(const JsonKey& row, const Mesh& mesh) {
  for (const auto& [axis, size] : mesh) {
    if (axis == row.name) return size;
  }
  if (row.presence.value != nullptr) return Json(*row.presence.value);
  if (!row.example.empty()) return Json::parse(row.example);
  return row.shape.choices.front();
}

// In AutoDDL's numbers: rows over machines, columns within them.
Json SbpProducts(const Mesh& mesh) {
  const uint32_t nodes = mesh[0].second;
  const uint32_t gpus = mesh[1].second;
  return {{"default", {Json::array({nodes, 1}), Json::array({1, gpus}), 1}}};
}

struct Line {
  std::string text;
  std::string comment;
};

// An object's lines: optional keys stand before the last required one, so that each of them may end
// with a comma.
std::vector<Line> LinesOf(const ObjectShape& table, const Json& object, const char* variant) {
  std::vector<Line> lines;
  std::vector<Line> optional;
  for (const JsonKey& row : table.keys) {
    if (!row.only.empty() && row.only != variant) continue;
    if (object.contains(row.name)) {
      lines.push_back({fmt::format("\"{}\": {}", row.name, object[row.name].dump()), row.about});
    } else if (row.presence.value != nullptr) {
      optional.push_back(
          {fmt::format("// \"{}\": {},", row.name, row.presence.value->dump()), row.about});
    }
  }
  for (size_t i = 0; i + 1 < lines.size(); ++i) lines[i].text += ",";
  lines.insert(lines.end() - 1, optional.begin(), optional.end());
  return lines;
}

std::string Aligned(const std::vector<Line>& lines, size_t indent) {
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.text.size());
  std::string text;
  for (const Line& line : lines)
    text +=
        fmt::format("{}{:<{}}  // {}\n", std::string(indent, ' '), line.text, width, line.comment);
  return text;
}

struct Parts {
  std::string name;
  std::string cluster;
  std::string model;
  Json training;
  const char* variant = "";  // of the training's table
  const ObjectShape* table = nullptr;
  Json strategy;
};

std::string FileOf(const Parts& parts, uint32_t ranks) {
  std::string text = fmt::format(
      "// A first scenario, made by \"rehearse init\": {} ranks. Play it with\n"
      "//   rehearse run THIS_FILE\n"
      "// \"rehearse schema scenario\" lists every key; lines that begin with // show defaults.\n"
      "{{\n",
      ranks);
  text += Aligned({{fmt::format("\"name\": {},", Json(parts.name).dump()), "what results call it"},
                   {fmt::format("\"cluster\": {},", Json(parts.cluster).dump()),
                    "others: rehearse list clusters"},
                   {fmt::format("\"model\": {{\"preset\": {}}},", Json(parts.model).dump()),
                    "others: rehearse list models"}},
                  2);
  text += "  \"training\": {\n" +
          Aligned(LinesOf(TrainingShape(), parts.training, parts.variant), 4) + "  },\n";
  text += "  \"strategy\": {\n" +
          Aligned(LinesOf(*parts.table, parts.strategy, kColumnRowDepth), 4) + "  },\n";
  text +=
      "  \"simulator\": {\n    \"fidelity\": \"fluid\"  // or formula: closed forms; or step: "
      "each step of a ring\n  }\n}\n";
  return text;
}

Json StrategyOf(const StrategyKind& kind, const ObjectShape& table, const Mesh& mesh) {
  Json strategy;
  for (const JsonKey& row : table.keys) {
    if (row.only == kXyz) continue;
    strategy[row.name] = ValueOf(row, mesh);
  }
  strategy["kind"] = kind.name;
  if (table.Find("nodes") != nullptr) strategy["products"] = SbpProducts(mesh);
  return strategy;
}

// The message alone: users have not seen the text that it is about, and init has no --allow-oom.
std::string WithoutPlace(const Error& error) {
  std::string message = error.what();
  const std::string pointer = error.place().pointer + ": ";
  if (const size_t at = message.find(pointer); at != std::string::npos)
    message.erase(0, at + pointer.size());
  return message.substr(0, message.find("; --allow-oom"));
}

std::string TextOf(const Mesh& mesh) {
  std::string text;
  for (const auto& [axis, size] : mesh)
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis, size);
  return text;
}

// More of the same, for example: "as in --cluster dgx-a100:nodes=2". Nothing for a cluster's file,
// or a preset of one size.
std::string LargerCluster(const std::string& text, const Cluster& cluster) {
  const std::string name = text.substr(0, text.find(':'));
  for (const ClusterPreset& preset : ClusterPresets()) {
    if (preset.name != name || preset.parameters.empty()) continue;
    const PresetParameter& parameter = preset.parameters.front();
    uint64_t most = 0;
    if (parameter.name == "nodes") most = cluster.node_count();
    if (parameter.name == "devices" || parameter.name == "ranks") most = cluster.device_count();
    if (most == 0) return fmt::format(" ({} has \"{}\")", name, parameter.name);
    return fmt::format(", as in --cluster {}:{}={}", name, parameter.name, 2 * most);
  }
  return "";
}

// What is wrong with it; nothing if it can be played.
std::optional<std::string> ProblemOf(const std::string& text) {
  try {
    Prepare(ReadScenario(JsonDocument::FromText(text, "rehearse init")));
    return std::nullopt;
  } catch (const Error& error) {
    return WithoutPlace(error);
  }
}

}  // namespace

std::string FirstScenario(const FirstScenarioRequest& request) {
  const StrategyKind& kind = FindStrategy(request.strategy);
  const ModelPreset& model = FindModel(request.model);
  const std::unique_ptr<Cluster> cluster = ReadClusterArgument(request.cluster);
  const uint32_t ranks = cluster->device_count();

  Parts parts;
  parts.name = fmt::format("{} with {} on {}", model.name, kind.name, request.cluster);
  parts.cluster = request.cluster;
  parts.model = model.name;
  parts.table = &kind.tables.front()();
  const bool has_tokens = model.kind == "decoder";
  parts.variant = VariantOfTraining(model.kind);
  constexpr uint32_t kImagesOfARank = 32;
  parts.training["batch"] = has_tokens ? ranks : ranks * kImagesOfARank;
  if (has_tokens) parts.training["sequence"] = 2048;
  parts.training["recomputation"] = has_tokens ? "full" : "none";

  // Of the meshes, the one to tell of is the last that was short of nothing but memory: later ones
  // need less.
  std::string problem = "its axes cannot have this many ranks";
  bool is_possible = false;
  for (const Mesh& mesh : MeshesOf(*parts.table, *cluster)) {
    parts.strategy = StrategyOf(kind, *parts.table, mesh);
    std::string text = FileOf(parts, ranks);
    const std::optional<std::string> found = ProblemOf(text);
    if (!found) return text;
    const bool lacks_memory = found->starts_with("out of memory");
    if (lacks_memory || !is_possible) problem = fmt::format("{}: {}", TextOf(mesh), *found);
    is_possible = is_possible || lacks_memory;
  }
  throw Error(fmt::format(
      "no mesh of the {} ranks of {} works for {} with {}; another --strategy may help, a smaller "
      "--model, or a larger cluster{}. {}: {}",
      ranks, request.cluster, model.name, kind.name, LargerCluster(request.cluster, *cluster),
      is_possible ? "What comes nearest is" : "The last one tried", problem));
}

}  // namespace rehearse
