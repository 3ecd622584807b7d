// What studies and searches choose from: axes of choices, each of which makes some changes to the
// scenario, and constraints that a scenario must meet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/evaluating/changes.h"
#include "scenarios/readers/search_options.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"

namespace rehearse {

struct SpaceChoice {
  std::string name;  // "column 2 row 1 depth 8"
  Changes changes;
};

struct SpaceAxis {
  std::string name;  // "column x row x depth x data"
  std::vector<SpaceChoice> choices;
  Place place = {};
  bool is_always_named = false;  // in points' names, even if there is only one choice
};

// The change of this path to this value; throws Error if it is impossible.
using ChangeReader = std::function<nlohmann::json(const std::string& path, const JsonReader&)>;

// Throws Error if `path` is no path of a scenario, such as strategy.depth.
void CheckScenarioPath(const std::string& path, const JsonReader& reader);
// Members of an object whose keys are paths. Keys are sorted, as JSON objects are unordered; "a"
// comes before "a.b", which then changes a part of it.
Changes ReadChanges(const JsonReader& reader, const ChangeReader& change);
// {"path", "values"} or {"choices"}; the choice of a value is called "depth=2" if `between` is '='.
SpaceAxis ReadListedAxis(const JsonReader& object, char between, const ChangeReader& change);

std::string LastPart(const std::string& path);  // "depth" of "strategy.depth"

// The first constraint that the scenario breaks; nothing if it meets all.
std::optional<std::string> BrokenConstraint(const std::vector<SpaceConstraint>& constraints,
                                            const nlohmann::json& scenario);

}  // namespace rehearse
