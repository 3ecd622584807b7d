#include "scenarios/evaluating/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/readers/search_shapes.h"

namespace rehearse {
namespace {

SpaceConstraint ReadConstraint(const JsonReader& object) {
  const JsonReader reader = object.As(ConstraintShape());
  SpaceConstraint constraint;
  for (const JsonReader& path : reader.At("product").Elements())
    constraint.product.push_back(path.String());
  if (constraint.product.empty()) reader.At("product").Expected("at least one path");
  const auto read = [&](const char* key) {
    return reader.Has(key) ? std::optional(reader.At(key).Whole<uint64_t>()) : std::nullopt;
  };
  constraint.equals = read("equals");
  constraint.at_least = read("at_least");
  constraint.at_most = read("at_most");
  constraint.divides = read("divides");
  if (!constraint.equals && !constraint.at_least && !constraint.at_most && !constraint.divides)
    reader.Fail("expected \"equals\", \"at_least\", \"at_most\" or \"divides\"");
  return constraint;
}

}  // namespace

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

bool SpaceConstraint::Allows(uint64_t value) const {
  return (!equals || value == *equals) && (!at_least || value >= *at_least) &&
         (!at_most || value <= *at_most) && (!divides || (value > 0 && *divides % value == 0));
}

std::string SpaceConstraint::Text() const {
  std::string text = fmt::format("{}", fmt::join(product, " * "));
  if (equals) text += fmt::format(" is {}", *equals);
  if (at_least) text += fmt::format(" is at least {}", *at_least);
  if (at_most) text += fmt::format(" is at most {}", *at_most);
  if (divides) text += fmt::format(" divides {}", *divides);
  return text;
}

std::vector<SpaceConstraint> ReadConstraints(const JsonReader& list) {
  std::vector<SpaceConstraint> constraints;
  for (const JsonReader& constraint : list.Elements())
    constraints.push_back(ReadConstraint(constraint));
  return constraints;
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
