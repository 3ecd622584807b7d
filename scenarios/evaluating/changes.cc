#include "scenarios/evaluating/changes.h"

#include <algorithm>
#include <charconv>

namespace rehearse {

bool MoreIsBetter(const std::string& number) {
  for (const char* good : {"utilization", "per_second", "overlap_fraction"})
    if (number.find(good) != std::string::npos) return true;
  return false;
}

std::optional<double> NumberAt(const std::string& path, const nlohmann::json& result) {
  const nlohmann::json* part = &result;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    const std::string key = path.substr(at, dot - at);
    if (!part->is_object() || !part->contains(key)) return std::nullopt;
    part = &(*part)[key];
    at = dot + 1;
  }
  if (!part->is_number()) return std::nullopt;
  return part->get<double>();
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
