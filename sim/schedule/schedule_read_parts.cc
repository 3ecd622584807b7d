#include "sim/schedule/schedule_read_parts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"

namespace rehearse {

uint32_t CountAt(const JsonReader& reader, int64_t least, int64_t most) {
  return static_cast<uint32_t>(reader.Integer(least, most));
}

Bytes SizeOrNone(const JsonReader& reader) {
  return reader.IsString() && reader.String() == "0B" ? Bytes(0) : reader.Size();
}

std::vector<JsonReader> OneOrMore(const JsonReader& reader) {
  return reader.IsArray() ? reader.Elements() : std::vector<JsonReader>{reader};
}

void ListedNames::Add(const std::string& name) {
  places_[name].push_back(count_++);
  if (!name.empty()) names_.push_back(name);
}

uint32_t ListedNames::Find(const JsonReader& reader) const {
  if (count_ == 0) reader.Fail(fmt::format("nothing can be named here: there is no {}", noun_));
  if (!reader.IsString()) {
    if (!reader.value().is_number())
      reader.Expected(fmt::format("the name of {}, or its place in the list", One()));
    return CountAt(reader, 0, int64_t{count_} - 1);
  }
  return FindNamed(reader.String(), reader);
}

uint32_t ListedNames::FindNamed(const std::string& name, const JsonReader& reader) const {
  const auto found = places_.find(name);
  if (found == places_.end())
    reader.Fail(
        fmt::format("found {}, expected the name of {}{}", QuotedJson(name), One(), HintFor(name)));
  if (found->second.size() > 1)
    reader.Fail(fmt::format(
        "found {}, but {} {}s have this name; expected the place in the list: {} or {}",
        QuotedJson(name), found->second.size(), noun_, found->second[0], found->second[1]));
  return found->second.front();
}

uint32_t ListedNames::FindLatest(const JsonReader& reader) const {
  if (!reader.IsString() || count_ == 0) return Find(reader);
  const std::string name = reader.String();
  const auto found = places_.find(name);
  return found == places_.end() ? FindNamed(name, reader) : found->second.back();
}

std::string ListedNames::HintFor(const std::string& name) const { return KnownNames(name, names_); }

}  // namespace rehearse
