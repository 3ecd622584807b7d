#include "scenarios/sweeping/study.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace rehearse {
namespace {

// Writes the number wherever a string contains {value}; a string that is just {value} becomes the
// number.
void Fill(nlohmann::json& json, double value) {
  if (json.is_structured()) {
    for (nlohmann::json& part : json) Fill(part, value);
    return;
  }
  if (!json.is_string()) return;
  auto text = json.get<std::string>();
  if (text == kStudyValue) {
    json = value;
    return;
  }
  for (size_t at = text.find(kStudyValue); at != std::string::npos; at = text.find(kStudyValue, at))
    text.replace(at, std::string(kStudyValue).size(), fmt::format("{}", value));
  json = std::move(text);
}

}  // namespace

std::optional<double> StudyMetric::Of(const nlohmann::json& result) const {
  const std::optional<double> own = NumberAt(value, result);
  if (!own || minus.empty()) return own ? std::optional(*own * times) : std::nullopt;
  const std::optional<double> less = NumberAt("minus." + value, result);
  return less ? std::optional((*own - *less) * times) : std::nullopt;
}

std::optional<std::string> StudyMetric::Axis() const {
  constexpr std::string_view kBefore = "by_axis.";
  if (!value.starts_with(kBefore)) return std::nullopt;
  return value.substr(kBefore.size(), value.rfind('.') - kBefore.size());
}

void ChangeAllPoints(Study& study, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(fmt::format("--set: found \"{}\", expected path=value such as training.batch=64",
                            assignment));
  const std::string text = assignment.substr(equals + 1);
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  for (StudyPoint& point : study.points)
    point.changes.emplace_back(assignment.substr(0, equals), value);
  ++study.later_changes;
}

Changes OwnChanges(const Study& study, const StudyPoint& point) {
  return {point.changes.begin() + static_cast<ptrdiff_t>(study.common_changes),
          point.changes.end() - static_cast<ptrdiff_t>(study.later_changes)};
}

std::vector<std::string> ParametersOf(const Study& study) {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  for (const StudyPoint& point : study.points)
    for (const auto& [path, value] : OwnChanges(study, point))
      if (seen.insert(path).second) paths.push_back(path);
  return paths;
}

std::vector<JsonDocument> ScenariosOf(const Study& study, const StudyPoint& point,
                                      std::optional<double> calibrated) {
  JsonDocument scenario = study.base;
  const auto change = [&](const std::pair<std::string, nlohmann::json>& one) {
    scenario.Set(one.first + "=" + one.second.dump());
  };
  const auto middle =
      point.changes.begin() + static_cast<ptrdiff_t>(point.changes_before_calibration);
  std::for_each(point.changes.begin(), middle, change);
  const auto& calibration = study.groups[point.group].calibration;
  if (calibration && calibrated) {
    for (auto [path, value] : calibration->changes) {
      Fill(value, *calibrated);
      change({path, value});
    }
  }
  std::for_each(middle, point.changes.end(), change);
  std::vector<JsonDocument> scenarios = {scenario};
  if (!study.metric.minus.empty()) {
    std::for_each(study.metric.minus.begin(), study.metric.minus.end(), change);
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

}  // namespace rehearse
