// What a search found, as text, JSON (schema "rehearse.search.v1") and rows.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/searching/search.h"
#include "sim/report/data_table.h"

namespace rehearse {

struct SearchWords {
  size_t top = 10;       // configurations that the text shows
  bool explain = false;  // the first against the second: where the time is lost
  bool quality = false;  // how good the formula is
};

// A sentence about what was found; the best configurations, and why each is slower than the first;
// what the formula left out; and what was impossible, by reason. Ends with a newline.
std::string ToText(const Search& search, const FoundPoints& found, const SearchWords& words);
nlohmann::ordered_json ToJson(const Search& search, const FoundPoints& found,
                              const SearchWords& words);
// A row for each possible point: its name, a column for each path that the axes change, "status"
// (simulated or formula), the formula's number, the objectives and the parts of the step.
DataTable TableOf(const Search& search, const FoundPoints& found);

// Why a point is slower than the first: the part that takes longer by the most ("exposed depth
// +0.12 s").
std::string WhyNot(const SimulatedPoint& best, const SimulatedPoint& point);

}  // namespace rehearse
