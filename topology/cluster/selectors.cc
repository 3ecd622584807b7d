#include "topology/cluster/selectors.h"

#include <functional>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr std::string_view kArrow = "->";

// Which vertex the user may have meant.
std::string Suggest(const Cluster& cluster, const std::string& pattern,
                    const std::function<bool(const Vertex&)>& eligible) {
  std::vector<std::string> names;
  for (VertexId vertex = 0; vertex < cluster.vertex_count(); ++vertex) {
    if (!eligible(cluster.VertexAt(vertex))) continue;
    if (cluster.VertexAt(vertex).name.starts_with(pattern + "/"))
      return fmt::format("; did you mean \"{}/**\"?", pattern);
    names.push_back(cluster.VertexAt(vertex).name);
  }
  std::string literal = pattern.substr(0, pattern.find("/**"));
  const std::string suggestion = DidYouMean(pattern, names);
  return suggestion.empty() ? DidYouMean(literal, names) : suggestion;
}

// By vertex. Throws unless some vertex matches.
std::vector<bool> MatchingOrFail(const Cluster& cluster, const std::string& pattern,
                                 const Place& place) {
  std::vector<bool> matching(cluster.vertex_count());
  bool any = false;
  for (VertexId vertex = 0; vertex < matching.size(); ++vertex) {
    matching[vertex] = MatchesPattern(pattern, cluster.VertexAt(vertex).name);
    any = any || matching[vertex];
  }
  if (any) return matching;
  throw Error(place,
              fmt::format("\"{}\" matches no vertex of cluster \"{}\"{}", pattern, cluster.name(),
                          Suggest(cluster, pattern, [](const Vertex&) { return true; })));
}

// The positions of the pattern at which a match may stand after the characters read so far. A star
// can be passed without reading anything, and keeps its position when it reads a character.
bool MatchesFrom(std::string_view pattern, std::string_view name) {
  const size_t size = pattern.size();
  const auto is_any = [&](size_t at) { return pattern.substr(at, 2) == "**"; };
  const auto pass_stars = [&](std::vector<bool>& positions) {
    for (size_t at = 0; at < size; ++at)
      if (positions[at] && pattern[at] == '*') positions[at + (is_any(at) ? 2 : 1)] = true;
  };
  std::vector<bool> positions(size + 1);
  positions[0] = true;
  pass_stars(positions);
  for (const char c : name) {
    std::vector<bool> next(size + 1);
    for (size_t at = 0; at < size; ++at) {
      if (!positions[at]) continue;
      if (pattern[at] == '*') {
        if (c != '/' || is_any(at)) next[at] = true;
      } else if (pattern[at] == c || (pattern[at] == '?' && c != '/')) {
        next[at + 1] = true;
      }
    }
    pass_stars(next);
    positions = std::move(next);
  }
  return positions[size];
}

}  // namespace

// Most names of a large cluster fail at the first character that is not a wildcard and differs.
bool MatchesPattern(std::string_view pattern, std::string_view name) {
  const size_t literal = std::min(pattern.find_first_of("*?"), pattern.size());
  if (!name.starts_with(pattern.substr(0, literal))) return false;
  return MatchesFrom(pattern.substr(literal), name.substr(literal));
}

bool HasDirection(std::string_view pattern) {
  return pattern.find(kArrow) != std::string_view::npos;
}

std::string ReadSelector(const JsonReader& reader) {
  std::string pattern = reader.String();
  if (pattern.empty()) reader.Expected("a pattern such as \"node3/nic*\"");
  return pattern;
}

std::vector<uint32_t> SelectLinks(const Cluster& cluster, const std::string& pattern, bool one_way,
                                  const Place& place) {
  std::vector<uint32_t> selected;
  const auto select = [&](const auto& wanted) {
    for (uint32_t i = 0; i < cluster.link_count(); ++i) {
      if (wanted(cluster.SourceOf(i), cluster.TargetOf(i))) selected.push_back(i);
    }
  };
  const size_t arrow = pattern.find(kArrow);
  if (arrow == std::string::npos) {
    const std::vector<bool> ends = MatchingOrFail(cluster, pattern, place);
    select([&](VertexId from, VertexId to) { return ends[from] || ends[to]; });
  } else {
    const std::vector<bool> sources = MatchingOrFail(cluster, pattern.substr(0, arrow), place);
    const std::vector<bool> targets =
        MatchingOrFail(cluster, pattern.substr(arrow + kArrow.size()), place);
    select([&](VertexId from, VertexId to) {
      return (sources[from] && targets[to]) || (!one_way && sources[to] && targets[from]);
    });
  }
  return selected;
}

std::vector<uint32_t> SelectRanks(const Cluster& cluster, const std::string& pattern,
                                  const Place& place) {
  std::vector<uint32_t> selected;
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) {
    if (MatchesPattern(pattern, cluster.DeviceName(rank))) selected.push_back(rank);
  }
  if (!selected.empty()) return selected;
  const auto is_device = [](const Vertex& vertex) { return vertex.kind == VertexKind::kDevice; };
  throw Error(place, fmt::format("\"{}\" matches no device of cluster \"{}\"{}", pattern,
                                 cluster.name(), Suggest(cluster, pattern, is_device)));
}

}  // namespace rehearse
