#include "scenarios/searching/point_conditions.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/changes.h"

namespace rehearse {
namespace {

using nlohmann::json;

// As BrokenConstraint counts what is there.
uint64_t FactorIn(const json& value) {
  const bool counts =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  return counts ? value.get<uint64_t>() : 1;
}

bool ReplacesPartOf(const std::string& path, const std::string& other) {
  return path.rfind(other + ".", 0) == 0 || other.rfind(path + ".", 0) == 0;
}

// The axes with a choice that changes exactly this path; nothing if one changes what it is a part
// of, or a part of it.
std::optional<std::vector<size_t>> AxesOf(const SearchSpace& space, const std::string& path) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    bool changes_it = false;
    for (const SpaceChoice& choice : space.axes[i].choices) {
      for (const auto& [changed, value] : choice.changes) {
        if (ReplacesPartOf(changed, path)) return std::nullopt;
        changes_it = changes_it || changed == path;
      }
    }
    if (changes_it) axes.push_back(i);
  }
  return axes;
}

std::vector<uint64_t> ByChoice(const SpaceAxis& axis, const std::string& path, uint64_t otherwise) {
  std::vector<uint64_t> numbers;
  for (const SpaceChoice& choice : axis.choices) {
    numbers.push_back(otherwise);
    for (const auto& [changed, value] : choice.changes)
      if (changed == path) numbers.back() = FactorIn(value);
  }
  return numbers;
}

}  // namespace

PointConditions::PointConditions(const SearchSpace& space, const json& scenario) : space_(space) {
  for (size_t number = 0; number < space.constraints.size(); ++number) {
    Condition condition{.number = number, .constant = 1, .factors = {}};
    const std::vector<std::string>& product = space.constraints[number].product;
    const bool is_known = std::all_of(product.begin(), product.end(), [&](const std::string& path) {
      const std::optional<std::vector<size_t>> axes = AxesOf(space, path);
      if (!axes || axes->size() > 1) return false;
      const uint64_t otherwise = FactorIn(ValueAt(scenario, path));
      if (axes->empty())
        condition.constant *= otherwise;
      else
        condition.factors.push_back(
            {axes->front(), ByChoice(space.axes[axes->front()], path, otherwise)});
      return true;
    });
    if (is_known) conditions_.push_back(std::move(condition));
  }
}

size_t PointConditions::BrokenBy(const SpacePoint& point) const {
  for (const Condition& condition : conditions_) {
    uint64_t product = condition.constant;
    for (const Factor& factor : condition.factors) product *= factor.by_choice[point[factor.axis]];
    if (!space_.constraints[condition.number].Allows(product)) return condition.number;
  }
  return kNone;
}

}  // namespace rehearse
