#include "sim/base/json_change.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/visible_text.h"

namespace rehearse {

std::string ToText(const JsonChange& change) {
  std::string where;
  if (!change.file.empty()) where = " in " + change.file;
  if (change.line > 0) where += fmt::format(", line {}", change.line);
  return VisibleText(fmt::format("changed{}: {} = {}, {}", where, change.path, change.is,
                                 change.was.empty() ? "was not there" : "was " + change.was));
}

nlohmann::ordered_json ToJson(const std::vector<JsonChange>& changes) {
  const auto value = [](const std::string& text) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(text, nullptr, false);
    return json.is_discarded() ? nlohmann::ordered_json(text) : json;
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JsonChange& change : changes) {
    nlohmann::ordered_json& json = list.emplace_back();
    json["file"] = change.file;
    if (change.line > 0) json["line"] = change.line;
    json["path"] = change.path;
    if (!change.was.empty()) json["was"] = value(change.was);
    json["is"] = value(change.is);
  }
  return list;
}

}  // namespace rehearse
