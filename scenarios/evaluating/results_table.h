// What a file of results holds, as a table: a row a point.
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/evaluating/results_file.h"
#include "sim/report/data_table.h"

namespace rehearse {

struct ResultsView {
  std::string sort = {};  // by this number, the best first, points without it last; "" as kept
  size_t top = 0;         // only so many; 0: all
};

// Throws Error where no point has the number to sort by, and where the file has no points.
std::vector<KeptPoint> ReadKeptPoints(ResultsFile& file, const ResultsView& view,
                                      const std::string& name);
// Columns study, point, one for each path that points change, "calibrated" where some are, status
// (done or impossible), reason, and each number of the results.
DataTable TableOf(const std::vector<KeptPoint>& points);
// The same in short, to read: the step, tokens a second, utilisation, memory, and what was sorted
// by.
std::string ToText(const std::vector<KeptPoint>& points, const std::string& sort);

}  // namespace rehearse
