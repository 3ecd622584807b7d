#include "tools/foreign/traces/chakra/chakra_groups.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

// The JSON objects in what a converter wrote for the list of a node's inputs: ['[{...}, {...}]'] in
// Python's words, ["[{\"pg_name\": ...}]"], or without quotes.
std::string ObjectsIn(const std::string& values) {
  const size_t begin = values.find('{');
  const size_t end = values.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "[]";
  const size_t opening = begin == 0 ? std::string::npos : values.find_last_not_of("[ ", begin - 1);
  const bool is_quoted =
      opening != std::string::npos && (values[opening] == '\'' || values[opening] == '"');
  std::string objects = "[";
  for (size_t i = begin; i <= end; ++i) {
    if (is_quoted && values[i] == '\\' && i < end) ++i;
    objects += values[i];
  }
  return objects + "]";
}

uint64_t CountIn(const nlohmann::json& group, const char* key) {
  const auto found = group.find(key);
  return found != group.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

}  // namespace

ChakraGroups ReadChakraGroups(const std::string& file, uint32_t ranks) {
  ChakraGroups groups;
  if (file.empty()) return groups;
  const JsonDocument document = JsonDocument::FromFile(file);
  if (!document.value().is_object())
    throw Error(fmt::format("{}: expected groups of ranks, such as {{\"0\": [0, 1]}}", file));
  for (const auto& [name, list] : document.value().items()) {
    const std::string group = VisibleText(name);
    const auto fail = [&](const std::string& what) {
      throw Error(fmt::format("{}: group \"{}\": {}", file, group, what));
    };
    if (!list.is_array() || list.empty()) fail("expected a list of ranks");
    std::vector<uint32_t>& members = groups[name];
    for (const nlohmann::json& rank : list) {
      if (!rank.is_number_unsigned() || rank.get<uint64_t>() >= ranks)
        fail(fmt::format("found {}, expected one of {} ranks", rank.dump(), ranks));
      members.push_back(rank.get<uint32_t>());
    }
    if (std::set<uint32_t>(members.begin(), members.end()).size() != members.size())
      fail("found a rank twice");
  }
  return groups;
}

NotedGroups ReadNotedGroups(const ChakraNote& note, const std::string& place) {
  const JsonDocument document = JsonDocument::FromText(ObjectsIn(note.text), place);
  NotedGroups groups;
  for (const nlohmann::json& group : document.value()) {
    if (!group.is_object() || !group.contains("pg_name")) continue;
    const nlohmann::json& name = group.at("pg_name");
    NotedGroup& noted = groups[name.is_string() ? name.get<std::string>() : name.dump()];
    noted = NotedGroup();
    noted.size = CountIn(group, "group_size");
    const auto ranks = group.find("ranks");
    if (ranks == group.end()) continue;
    for (const nlohmann::json& rank : *ranks) {
      if (!rank.is_number_unsigned())
        throw Error(fmt::format("{}: found a group with a rank that is no number", place));
      noted.ranks.push_back(rank.get<uint64_t>());
    }
  }
  return groups;
}

std::vector<uint32_t> MembersOfNoted(const NotedGroup& group, uint32_t ranks) {
  std::vector<uint32_t> members;
  if (group.ranks.empty() && (group.size == 0 || group.size == ranks)) {
    for (uint32_t rank = 0; rank < ranks; ++rank) members.push_back(rank);
    return members;
  }
  if (group.size != 0 && group.size != group.ranks.size()) {
    throw Error(fmt::format("lists {} of its {} ranks, and there are traces of {}",
                            group.ranks.size(), group.size, ranks));
  }
  for (const uint64_t rank : group.ranks) {
    if (rank >= ranks) throw Error(fmt::format("has rank {}, but there are {} ranks", rank, ranks));
    members.push_back(static_cast<uint32_t>(rank));
  }
  if (std::set<uint32_t>(members.begin(), members.end()).size() != members.size())
    throw Error("has a rank twice");
  return members;
}

}  // namespace rehearse
