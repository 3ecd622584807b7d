// Which points of a study are meant, without all of their full names: by
//
//   "IC1/M2"                                its name
//   "IC1"                                   what its name begins with, up to a "/"
//   "*/fluid"                               a pattern: * is any text, ? any character
//   {"where": {"cluster": "dgx-h100*"}}     values of its scenario; texts may be patterns
//
// or a list of these. What several points match means all of them, in the study's order.
#pragma once

#include <string>
#include <vector>

#include "scenarios/evaluating/axes.h"
#include "scenarios/sweeping/study.h"
#include "sim/base/json_reader.h"

namespace rehearse {

// Whether a text is as the pattern says.
bool MatchesPattern(const std::string& text, const std::string& pattern);

// Positions in Study::points. Throws Error (file, line, pointer, found, expected) for what no point
// matches.
std::vector<size_t> PointsMeant(const Study& study, const JsonReader& reader,
                                const ChangeReader& reader_of_changes);

// What the names of these points differ in: without the parts, up to a "/", that all of them begin
// with, and those that all of them end with.
std::vector<std::string> LabelsOf(const Study& study, const std::vector<size_t>& points);

}  // namespace rehearse
