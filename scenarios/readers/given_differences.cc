#include "scenarios/readers/given_differences.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

using nlohmann::json;

void Compare(const std::string& path, const json* a, const json* b,
             std::vector<GivenDifference>* differences) {
  if (a != nullptr && b != nullptr && *a == *b) return;
  const std::string before = path.empty() ? "" : path + ".";
  const bool are_objects = a != nullptr && b != nullptr && a->is_object() && b->is_object();
  const bool are_arrays = a != nullptr && b != nullptr && a->is_array() && b->is_array();
  if (are_objects) {
    std::set<std::string> keys;
    for (const json* object : {a, b})
      for (const auto& [key, value] : object->items()) keys.insert(key);
    for (const std::string& key : keys) {
      const auto in_a = a->find(key);
      const auto in_b = b->find(key);
      Compare(before + key, in_a == a->end() ? nullptr : &*in_a,
              in_b == b->end() ? nullptr : &*in_b, differences);
    }
  } else if (are_arrays && a->size() == b->size()) {
    for (size_t i = 0; i < a->size(); ++i)
      Compare(fmt::format("{}{}", before, i), &(*a)[i], &(*b)[i], differences);
  } else {
    differences->push_back({path, a == nullptr ? "" : a->dump(), b == nullptr ? "" : b->dump()});
  }
}

}  // namespace

std::vector<GivenDifference> DifferencesOf(const json& a, const json& b) {
  std::vector<GivenDifference> all;
  Compare("", &a, &b, &all);
  std::vector<GivenDifference> differences;
  for (GivenDifference& difference : all) {
    if (difference.path != "name" && difference.path != "description")
      differences.push_back(std::move(difference));
  }
  return differences;
}

std::vector<GivenDifference> DifferencesOfWork(const std::vector<GivenDifference>& differences) {
  std::vector<GivenDifference> of_work;
  for (const GivenDifference& difference : differences) {
    const std::string& path = difference.path;
    for (const std::string key :
         {"model", "jobs", "schedule", "training.batch", "training.sequence"}) {
      if (path != key && !path.starts_with(key + ".")) continue;
      of_work.push_back(difference);
      break;
    }
  }
  return of_work;
}

}  // namespace rehearse
