// The best of each choice of an axis, side by side: "per" of a search.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/searching/search.h"

namespace rehearse {

// The parts of a step, which add up to it: compute, what is exposed of each axis, idle.
std::vector<std::pair<std::string, Seconds>> PartsOf(const SimulatedPoint& point);

// Why nothing is possible with a choice: how many points, and what excludes most of them.
std::string WhyNone(const FoundGroup& group);

struct TextColumn {
  std::string title;
  std::vector<std::string> cells = {};
};
using TextColumns = std::vector<TextColumn>;
// The first column begins at the left, the others end at the right; `last` is another one with text
// of any length.
std::string Aligned(const TextColumns& columns, size_t rows,
                    const std::vector<std::string>& last = {}, const std::string& last_title = "");

// A row for each choice: its best configuration, what that comes to, how it compares with the first
// choice's, the two parts of the step that take most of it, and what it waits for; or why nothing
// is possible with it.
// "" without groups.
std::string GroupsText(const Search& search, const FoundPoints& found);
// In the order of the axis; `best` is the number of the point among all, `ratio` what its first
// objective is beside the first choice's.
nlohmann::ordered_json GroupsJson(const Search& search, const FoundPoints& found);

}  // namespace rehearse
