// Changes to a scenario, and values read from scenarios and results by dotted paths.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace rehearse {

// Paths of a scenario and the values that they take, in order.
using Changes = std::vector<std::pair<std::string, nlohmann::json>>;

// The value that a scenario has at such a path; null if it has none.
nlohmann::json ValueAt(const nlohmann::json& scenario, const std::string& path);
// The number that a result has there: "by_axis.row.seconds".
std::optional<double> NumberAt(const std::string& path, const nlohmann::json& result);
std::optional<double> NumberAt(const std::string& path, const nlohmann::ordered_json& result);

// Numbers that every result has, whatever its axes are called.
std::vector<std::string> NumbersOfEveryResult();

// Whether more of this number of a result is better: it is for rates and utilisations, not for
// times, bytes and the like.
bool MoreIsBetter(const std::string& number);

}  // namespace rehearse
