#include "sim/base/json_document.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/input_file.h"

namespace rehearse {
namespace {

using nlohmann::json;

// The value of `--set path=text`: JSON if it is JSON, else a string; but not what was to be JSON.
json ValueOf(std::string_view text, const Place& by) {
  try {
    return ParseJson(text, kJsonSetFile, JsonComments::kRefused).value;
  } catch (const JsonSyntaxError&) {
    if (!text.empty() && (text.front() == '[' || text.front() == '{'))
      throw Error(
          by, fmt::format("found {}, which begins as JSON does but is none{}", QuotedJson(text),
                          by.file == kJsonSetFile ? "; in a shell it stands between ' and '" : ""));
    return std::string(text);
  }
}

// As a change shows it.
std::string Recorded(const json& value) {
  constexpr size_t kLongest = 1000;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= kLongest ? text : ShortenedJson(value);
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

JsonDocument JsonDocument::FromFile(const std::string& path, const ReadOptions& options) {
  return FromText(ReadJsonText(path, options), InputName(path), options);
}

JsonDocument JsonDocument::FromText(std::string_view text, const std::string& name,
                                    const ReadOptions& options) {
  ParsedJson parsed = ParseJson(text, name, JsonComments::kAllowed, options.size, options.numbers);
  JsonDocument document;
  document.files_ = {.given = options.given, .record = options.record};
  document.name_ = name;
  document.value_ = std::move(parsed.value);
  document.lines_ = std::move(parsed.lines);
  return document;
}

JsonDocument JsonDocument::FromValue(json value, const Place& place, const ReadOptions& options) {
  JsonDocument document;
  document.files_ = {.given = options.given, .record = options.record};
  document.name_ = place.file;
  document.value_ = std::move(value);
  document.lines_[""] = document.LineFor(place);
  if (!place.pointer.empty()) {
    document.path_ = place.pointer.substr(1) + ".";
    std::replace(document.path_.begin(), document.path_.end(), '/', '.');
  }
  return document;
}

int JsonDocument::LineFor(const Place& by) {
  const auto found = std::find_if(origins_.begin(), origins_.end(), [&](const Place& known) {
    return known.file == by.file && known.line == by.line && known.pointer == by.pointer;
  });
  const auto index = static_cast<int>(found - origins_.begin());
  if (found == origins_.end()) origins_.push_back(by);
  return kJsonSetLine - index;
}

void JsonDocument::Forget(const std::string& pointer) {
  // '0' follows '/' in ASCII.
  const auto forget = [&](auto& by_pointer) {
    by_pointer.erase(by_pointer.lower_bound(pointer + "/"), by_pointer.lower_bound(pointer + "0"));
  };
  forget(lines_);
  forget(deferred_);
  deferred_.erase(pointer);
}

void JsonDocument::Set(std::string_view assignment, const Place& by) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(by, fmt::format("found {}, expected path=value such as cluster.nodes=8",
                                QuotedJson(assignment)));
  if (!IsUtf8(assignment))
    throw Error(by, fmt::format("found {}, expected a text in UTF-8", QuotedJson(assignment)));
  json value = ValueOf(assignment.substr(equals + 1), by);

  std::vector<std::string> keys;
  std::string_view path = assignment.substr(0, equals);
  for (bool more = true; more;) {
    const size_t dot = path.find('.');
    more = dot != std::string_view::npos;
    keys.emplace_back(path.substr(0, dot));
    if (more) path.remove_prefix(dot + 1);
    if (keys.back().empty())
      throw Error(by, fmt::format("found an empty name in the path of {}, expected a path such "
                                  "as cluster.nodes",
                                  QuotedJson(assignment)));
  }
  if (keys.size() > kDeepestJson)
    throw Error(by, fmt::format("found a path of {} names, expected at most {}", keys.size(),
                                kDeepestJson));

  json* target = &value_;
  std::string pointer;
  bool is_new = false;
  size_t rest = 0;  // where the remaining keys begin in the assignment
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const auto fail = [&](const std::string& expected) {
      throw Error({by.file, by.line, by.pointer + pointer},
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
      is_new = false;
      // "01" and "1" are one element.
      AppendToPointer(pointer, std::to_string(index));
    } else if (target->is_object()) {
      is_new = !target->contains(key);
      target = &(*target)[key];
      AppendToPointer(pointer, key);
      if (is_new && i + 1 < keys.size()) {
        *target = json::object();
        lines_[pointer] = LineFor(by);
      }
    } else if (target->is_string()) {
      deferred_[pointer].push_back(
          {std::string(assignment), rest, {by.file, by.line, by.pointer + pointer}});
      return;
    } else {
      fail(fmt::format("an object with a key {}", QuotedJson(key)));
    }
    rest += key.size() + 1;
  }
  if (is_new || *target != value) {
    JsonChange change{.file = name_,
                      .path = path_ + std::string(assignment.substr(0, equals)),
                      .is = Recorded(value),
                      .by = by.file};
    if (!is_new) {
      change.was = Recorded(*target);
      const Place place = PlaceOf(pointer);
      change.line = place.line;
      if (place.line > 0) change.file = place.file;
    }
    changes_.push_back(std::move(change));
  }
  *target = std::move(value);
  Forget(pointer);
  lines_[pointer] = LineFor(by);
}

json JsonDocument::Given() const {
  json given = value_;
  for (const auto& [pointer, changes] : deferred_) {
    json& named = given[json::json_pointer(pointer)];
    auto text = named.get<std::string>();
    for (const Deferred& change : changes)
      text += (&change == &changes.front() ? ":" : ",") + change.assignment.substr(change.rest);
    named = std::move(text);
  }
  return given;
}

json JsonDocument::ValueInside(std::string_view path) const {
  json value;
  for (const auto& [pointer, changes] : deferred_) {
    for (const Deferred& change : changes) {
      const std::string_view assignment = change.assignment;
      if (assignment.substr(0, assignment.find('=')) == path)
        value = ValueOf(assignment.substr(path.size() + 1), change.by);
    }
  }
  return value;
}

Place JsonDocument::PlaceOf(const std::string& pointer) const {
  const int line = LineOf(lines_, pointer);
  if (line > kJsonSetLine) return {name_, line, pointer};
  const Place& origin = origins_[static_cast<size_t>(kJsonSetLine - line)];
  return {origin.file, origin.line, origin.pointer + pointer};
}

}  // namespace rehearse
