// Results as they are kept, and back.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"
#include "sim/base/error.h"
#include "sim/report/result_fields.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMinus = "minus";

Result ResultOf(Json json) {
  if (!json.is_object()) throw Error("a kept result is not an object");
  json.erase(kMinus);
  const JsonDocument document = JsonDocument::FromValue(json, {"a kept result", 0, ""});
  Result result = ResultFields().Read(document.Root());
  auto next = result.axes.begin();  // in their order, which JsonDocument does not know
  for (const auto& [name, use] : json.at("by_axis").items()) {
    std::iter_swap(
        next, std::find_if(next, result.axes.end(),
                           [&, axis = &name](const AxisUse& one) { return one.name == *axis; }));
    ++next;
  }
  return result;
}

}  // namespace

Json ResultJson(const std::vector<Result>& results) {
  Json json = ToJson(results.front());
  if (results.size() > 1) json[kMinus] = ToJson(results.back());
  return json;
}

std::vector<Result> ResultsOf(const Json& json) {
  try {
    std::vector<Result> results = {ResultOf(json)};
    if (json.contains(kMinus)) results.push_back(ResultOf(json.at(kMinus)));
    return results;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace rehearse
