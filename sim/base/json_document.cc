#include "sim/base/json_document.h"

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rehearse {
namespace {

using nlohmann::json;

// The value of `--set path=text`: JSON if it is JSON, else a string.
json ValueOf(std::string_view text) {
  try {
    return ParseJson(text, kJsonSetFile, JsonComments::kRefused).value;
  } catch (const JsonSyntaxError&) {
    return std::string(text);
  }
}

bool IsUtf8(std::string_view text) {
  try {
    json(std::string(text)).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

}  // namespace

JsonDocument JsonDocument::FromFile(const std::string& path) {
  return FromText(ReadJsonText(path), path);
}

JsonDocument JsonDocument::FromText(std::string_view text, const std::string& name) {
  ParsedJson parsed = ParseJson(text, name, JsonComments::kAllowed);
  JsonDocument document;
  document.name_ = name;
  document.value_ = std::move(parsed.value);
  document.lines_ = std::move(parsed.lines);
  return document;
}

void JsonDocument::Set(std::string_view assignment) {
  const Place place{kJsonSetFile, 0, ""};
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(place, fmt::format("found {}, expected path=value such as cluster.nodes=8",
                                   QuotedJson(assignment)));
  if (!IsUtf8(assignment))
    throw Error(place, fmt::format("found {}, expected a text in UTF-8", QuotedJson(assignment)));
  json value = ValueOf(assignment.substr(equals + 1));

  std::vector<std::string> keys;
  std::string_view path = assignment.substr(0, equals);
  for (bool more = true; more;) {
    const size_t dot = path.find('.');
    more = dot != std::string_view::npos;
    keys.emplace_back(path.substr(0, dot));
    if (more) path.remove_prefix(dot + 1);
    if (keys.back().empty())
      throw Error(place, fmt::format("found an empty name in the path of {}, expected a path such "
                                     "as cluster.nodes",
                                     QuotedJson(assignment)));
  }
  if (keys.size() > kDeepestJson)
    throw Error(place, fmt::format("found a path of {} names, expected at most {}", keys.size(),
                                   kDeepestJson));

  json* target = &value_;
  std::string pointer;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const auto fail = [&](const std::string& expected) {
      throw Error({kJsonSetFile, 0, pointer},
                  fmt::format("found {}, expected {} (to set {})", ShortenedJson(*target), expected,
                              QuotedJson(assignment)));
    };
    if (target->is_array()) {
      size_t index = 0;
      const char* const end = key.data() + key.size();
      const auto [stop, fault] = std::from_chars(key.data(), end, index);
      if (fault != std::errc() || stop != end || index >= target->size())
        fail(target->empty() ? "elements"
                             : fmt::format("an index from 0 to {} instead of {}",
                                           target->size() - 1, QuotedJson(key)));
      target = &(*target)[index];
      // "01" and "1" are one element.
      AppendToPointer(pointer, std::to_string(index));
    } else if (target->is_object()) {
      const bool is_new = !target->contains(key);
      target = &(*target)[key];
      AppendToPointer(pointer, key);
      if (is_new && i + 1 < keys.size()) {
        *target = json::object();
        lines_[pointer] = kJsonSetLine;
      }
    } else {
      fail(fmt::format("an object with a key {}", QuotedJson(key)));
    }
  }
  *target = std::move(value);
  // Forget what was below; '0' follows '/' in ASCII.
  lines_.erase(lines_.lower_bound(pointer + "/"), lines_.lower_bound(pointer + "0"));
  lines_[pointer] = kJsonSetLine;
}

}  // namespace rehearse
