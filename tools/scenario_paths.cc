#include "tools/scenario_paths.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scenarios/readers/scenario_shape.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

using Paths = std::map<std::string, std::vector<std::string>>;  // with the names that they take

void AddObject(const ObjectShape& object, const std::string& path, Paths* paths);

// An object is changed key by key; a list, and what the user's own names hold, as a whole.
void AddShape(const JsonShape& shape, const std::string& path, Paths* paths) {
  switch (shape.type) {
    case JsonType::kObject:
      return AddObject(shape.object(), path + ".", paths);
    case JsonType::kEither:
      for (const JsonShape& part : shape.parts) AddShape(part, path, paths);
      return;
    default:
      break;
  }
  std::vector<std::string> names = shape.choices;
  if (shape.type == JsonType::kTrueFalse) names = {"true", "false"};
  std::vector<std::string>& known = (*paths)[path];
  for (std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      known.push_back(std::move(name));
  }
}

void AddObject(const ObjectShape& object, const std::string& path, Paths* paths) {
  for (const JsonKey& key : object.keys) {
    if (key.name.starts_with('$')) continue;
    // A calibration is left out, because nobody types in what was measured.
    if (key.name == "calibration")
      (*paths)[path + key.name];
    else
      AddShape(key.shape, path + key.name, paths);
  }
}

}  // namespace

std::vector<ScenarioPath> ScenarioPaths() {
  Paths paths;
  AddObject(ScenarioShape(), "", &paths);
  for (const ClusterPreset& preset : ClusterPresets()) paths["cluster"].push_back(preset.name);
  std::vector<ScenarioPath> list;
  for (auto& [path, names] : paths) list.push_back({path, std::move(names)});
  return list;
}

}  // namespace rehearse
