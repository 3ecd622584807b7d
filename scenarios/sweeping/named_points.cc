#include "scenarios/sweeping/named_points.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "scenarios/evaluating/changes.h"
#include "scenarios/sweeping/study_shapes.h"
#include "sim/base/known_names.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

bool IsPattern(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

// The value of the point's scenario, before any calibration.
nlohmann::json ValueOfPoint(const Study& study, const StudyPoint& point, const std::string& path) {
  for (size_t i = point.changes.size(); i-- > 0;) {
    const auto& [changed, value] = point.changes[i];
    if (changed == path) return value;
    if (path.starts_with(changed + ".")) return ValueAt(value, path.substr(changed.size() + 1));
    if (!changed.starts_with(path + ".")) continue;
    JsonDocument scenario = study.base;  // a part of the value changes
    for (const auto& [one, its_value] : point.changes) scenario.Set(one + "=" + its_value.dump());
    return ValueAt(scenario.value(), path);
  }
  return ValueAt(study.base.value(), path);
}

bool IsAsWanted(const nlohmann::json& value, const nlohmann::json& wanted) {
  if (value == wanted) return true;
  return value.is_string() && wanted.is_string() && IsPattern(wanted.get<std::string>()) &&
         MatchesPattern(value.get<std::string>(), wanted.get<std::string>());
}

// What the points have there, as known names.
std::string ValuesThere(const Study& study, const std::string& path, const nlohmann::json& wanted) {
  std::vector<std::string> values;
  for (const StudyPoint& point : study.points) {
    const nlohmann::json value = ValueOfPoint(study, point, path);
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (std::find(values.begin(), values.end(), text) == values.end())
      values.push_back(std::move(text));
  }
  return KnownNames(wanted.is_string() ? wanted.get<std::string>() : wanted.dump(), values);
}

std::vector<size_t> PointsWhere(const Study& study, const JsonReader& object,
                                const ChangeReader& reader_of_changes) {
  const JsonReader where = object.As(PointsWhereShape()).At("where");
  const Changes wanted = ReadChanges(where, reader_of_changes);
  if (wanted.empty()) where.Expected("values such as {\"training.batch\": 512}");
  std::vector<size_t> meant(study.points.size());
  for (size_t i = 0; i < meant.size(); ++i) meant[i] = i;
  for (const auto& [path, value] : wanted) {
    std::vector<size_t> left;
    for (const size_t i : meant)
      if (IsAsWanted(ValueOfPoint(study, study.points[i], path), value)) left.push_back(i);
    if (left.empty())
      where.At(path).Fail(fmt::format("no point{} has the value {}{}",
                                      meant.size() < study.points.size() ? " of these" : "",
                                      VisibleText(value.dump()), ValuesThere(study, path, value)));
    meant = std::move(left);
  }
  return meant;
}

std::vector<size_t> PointsCalled(const Study& study, const JsonReader& reader) {
  const std::string name = reader.String();
  std::vector<std::string> names;
  std::vector<size_t> meant;
  const std::string start = name.ends_with('/') ? name : name + "/";
  for (size_t i = 0; i < study.points.size(); ++i) {
    const std::string& own = study.points[i].name;
    if (own == name) return {i};
    if (IsPattern(name) ? MatchesPattern(own, name) : own.starts_with(start)) meant.push_back(i);
    names.push_back(own);
  }
  if (meant.empty())
    reader.Fail(IsPattern(name)
                    ? fmt::format("no point's name is like \"{}\"{}", name, KnownNames(name, names))
                    : fmt::format("there is no point \"{}\"{}", name, KnownNames(name, names)));
  return meant;
}

// Where the part of the name that follows begins.
size_t AfterCommonStart(const std::vector<std::string>& names) {
  size_t common = 0;
  for (size_t i = 0; i < names.front().size(); ++i) {
    const bool all = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return i < name.size() && name[i] == names.front()[i];
    });
    if (!all) return common;
    if (names.front()[i] == '/') common = i + 1;
  }
  return common;
}

}  // namespace

bool MatchesPattern(const std::string& text, const std::string& pattern) {
  size_t at = 0;
  size_t in_pattern = 0;
  size_t star = std::string::npos;  // the last one, and up to where it reaches
  size_t reached = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      reached = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string::npos) {
      in_pattern = star + 1;
      at = ++reached;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

std::vector<size_t> PointsMeant(const Study& study, const JsonReader& reader,
                                const ChangeReader& reader_of_changes) {
  if (reader.IsString()) return PointsCalled(study, reader);
  if (reader.IsObject()) return PointsWhere(study, reader, reader_of_changes);
  std::vector<size_t> points;
  for (const JsonReader& element : reader.Elements()) {
    const std::vector<size_t> meant = element.IsObject()
                                          ? PointsWhere(study, element, reader_of_changes)
                                          : PointsCalled(study, element);
    points.insert(points.end(), meant.begin(), meant.end());
  }
  return points;
}

std::vector<std::string> LabelsOf(const Study& study, const std::vector<size_t>& points) {
  std::vector<std::string> names;
  for (const size_t point : points) names.push_back(study.points[point].name);
  if (names.size() < 2) return names;
  const size_t start = AfterCommonStart(names);
  for (std::string& name : names) {
    name.erase(0, start);
    std::reverse(name.begin(), name.end());
  }
  const size_t end = AfterCommonStart(names);
  for (std::string& name : names) {
    name.erase(0, end);
    std::reverse(name.begin(), name.end());
  }
  return names;
}

}  // namespace rehearse
