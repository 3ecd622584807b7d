#include "scenarios/evaluating/changes.h"

#include <algorithm>
#include <charconv>

#include "sim/report/result.h"

namespace rehearse {

bool MoreIsBetter(const std::string& number) {
  for (const char* good : {"utilization", "per_second", "overlap_fraction"})
    if (number.find(good) != std::string::npos) return true;
  return false;
}

namespace {

template <typename Json>
std::optional<double> NumberIn(const std::string& path, const Json& result) {
  const Json* part = &result;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    const std::string key = path.substr(at, dot - at);
    if (!part->is_object() || !part->contains(key)) return std::nullopt;
    part = &(*part)[key];
    at = dot + 1;
  }
  if (!part->is_number()) return std::nullopt;
  return part->template get<double>();
}

}  // namespace

std::optional<double> NumberAt(const std::string& path, const nlohmann::json& result) {
  return NumberIn(path, result);
}
std::optional<double> NumberAt(const std::string& path, const nlohmann::ordered_json& result) {
  return NumberIn(path, result);
}

std::vector<std::string> NumbersOfEveryResult() {
  std::vector<std::string> numbers = NumbersOfResults();
  std::erase_if(numbers,
                [](const std::string& name) { return name.find('*') != std::string::npos; });
  return numbers;
}

nlohmann::json ValueAt(const nlohmann::json& scenario, const std::string& path) {
  const nlohmann::json* part = &scenario;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    const std::string key = path.substr(at, dot - at);
    at = dot + 1;
    if (part->is_object() && part->contains(key)) {
      part = &(*part)[key];
    } else if (part->is_array()) {
      size_t index = 0;
      const auto [stop, fault] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (fault != std::errc() || stop != key.data() + key.size() || index >= part->size())
        return nullptr;
      part = &(*part)[index];
    } else {
      return nullptr;
    }
  }
  return *part;
}

}  // namespace rehearse
