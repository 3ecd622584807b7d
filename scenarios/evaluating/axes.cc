#include "scenarios/evaluating/axes.h"

#include <fmt/format.h>

namespace rehearse {

std::string LastPart(const std::string& path) { return path.substr(path.rfind('.') + 1); }

void CheckScenarioPath(const std::string& path, const JsonReader& reader) {
  if (path.empty() || path.find('=') != std::string::npos)
    reader.Fail(fmt::format("\"{}\" is no path of a scenario such as strategy.depth", path));
}

Changes ReadChanges(const JsonReader& reader, const ChangeReader& change) {
  Changes changes;
  for (const auto& [path, value] : reader.Members()) {
    CheckScenarioPath(path, value);
    changes.emplace_back(path, change(path, value));
  }
  return changes;
}

SpaceAxis ReadListedAxis(const JsonReader& object, char between, const ChangeReader& change) {
  SpaceAxis axis;
  axis.place = object.place();
  if (object.Has("choices")) {
    const JsonReader choices = object.As(ChoicesShape()).At("choices");
    for (const JsonReader& element : choices.Elements()) {
      const JsonReader choice = element.As(ChoiceShape());
      axis.choices.push_back({choice.At("name").String(), ReadChanges(choice.At("set"), change)});
      axis.name += (axis.name.empty() ? "" : " or ") + axis.choices.back().name;
    }
    return axis;
  }
  const JsonReader reader = object.As(ValuesShape());
  const std::string path = reader.At("path").String();
  CheckScenarioPath(path, reader.At("path"));
  axis.name = path;
  for (const JsonReader& value : reader.At("values").Elements()) {
    const std::string text = value.IsString() ? value.String() : value.value().dump();
    axis.choices.push_back(
        {fmt::format("{}{}{}", LastPart(path), between, text), {{path, change(path, value)}}});
  }
  return axis;
}

std::optional<std::string> BrokenConstraint(const std::vector<SpaceConstraint>& constraints,
                                            const nlohmann::json& scenario) {
  for (const SpaceConstraint& constraint : constraints) {
    uint64_t product = 1;
    for (const std::string& path : constraint.product) {
      const nlohmann::json value = ValueAt(scenario, path);
      if (value.is_number_unsigned()) product *= value.get<uint64_t>();
    }
    if (!constraint.Allows(product)) return constraint.Text();
  }
  return std::nullopt;
}

}  // namespace rehearse
