// A sweep compared with what is published: errors of figures and ratios, orders right and wrong, as
// text, as a Markdown table, as rows for other programs and as JSON.
//
// The value of a point is its metric, or with "relative_to" the ratio of the two metrics; its error
// is value / published - 1. A row used for calibration is shown but not judged. Orders are those of
// every two points of a group whose published figures can be compared (both of the metric, or both
// relative to one point, which itself counts as 1) and differ by more than 1 %, and the study's own
// "orders".
//
// If the sweep was stopped, all this is about the points that are done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/sweeping/study.h"
#include "scenarios/sweeping/sweep.h"
#include "sim/report/data_table.h"

namespace rehearse {

inline constexpr double kTie = 0.01;

struct ComparedPoint {
  std::optional<double> value;  // nothing if the point failed
  std::optional<double> error;  // relative; if a figure is published
  bool calibrates = false;
  std::vector<std::optional<double>> columns;
};

struct OrderedPair {
  size_t lower = 0;  // positions in Study::points
  size_t upper = 0;
  bool right = false;
};

struct PublishedComparison {
  std::vector<ComparedPoint> points;  // as in the study
  std::vector<OrderedPair> pairs;
  size_t judged = 0;  // points with an error that were not used for calibration
  size_t within = 0;  // ... with an error of at most the tolerance
  double median = 0;  // of the errors' sizes
  size_t worst = 0;   // position of the largest
  // Points that are done or impossible, in the order in which they are shown.
  std::vector<size_t> order;
  // The best of all, if nothing is published or an order was asked for.
  std::optional<size_t> best;
};

// `sort` is a number of results by which points are sorted, the best first, those without it last;
// "" keeps the study's order. Throws Error if no point has it.
PublishedComparison Compare(const Study& study, const Sweep& sweep, const std::string& sort = "");

std::string ToText(const Study& study, const Sweep& sweep, const PublishedComparison& comparison);
std::string ToMarkdown(const Study& study, const Sweep& sweep,
                       const PublishedComparison& comparison);
// A row for each point: its name and group, a column for each value that groups, points and grids
// change, the calibrated value, "status" (done or impossible) and "reason", the metric and the
// study's columns. If points are relative to others, "relative_to" and "ratio"; if figures are
// published, "published" (of the metric, or of the ratio if there is one), "relative_error" and
// "calibrates". "best" is true for one row, if nothing is published or an order was asked for.
DataTable TableOf(const Study& study, const Sweep& sweep, const PublishedComparison& comparison);
// Schema "rehearse.study.v1".
nlohmann::ordered_json ToJson(const Study& study, const Sweep& sweep,
                              const PublishedComparison& comparison);

}  // namespace rehearse
