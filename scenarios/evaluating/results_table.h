// The contents of a results file as a table with a row for each point.
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/evaluating/results_file.h"
#include "sim/report/data_table.h"

namespace rehearse {

struct ResultsView {
  std::string sort = {};  // by this number, the best first, points without it last; "": as kept
  size_t top = 0;         // only this many; 0: all
};

// Throws Error if no point has the number to sort by, or if the file has no points.
std::vector<KeptPoint> ReadKeptPoints(ResultsFile& file, const ResultsView& view,
                                      const std::string& name);
// Columns study, point, one for each path that points change, "calibrated" where some are, status
// (done or impossible), reason, and each number of the results.
DataTable TableOf(const std::vector<KeptPoint>& points);
// A short version for people: the step, tokens per second, utilisation, memory, and the number
// sorted by.
std::string ToText(const std::vector<KeptPoint>& points, const std::string& sort);

}  // namespace rehearse
