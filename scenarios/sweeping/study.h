// A study: many scenarios that share a base, the number that is read from each, and what is
// published about it.
//
//   {
//     "name": "...", "description": "...", "source": "...",     the latter two are optional
//     "base": "../axonn-weak-5b.json",               a scenario, or the path of one from here
//     "set": {"training.batch": 512},                changes for all points, as with `run --set`
//     "metric": "step_seconds",                      a number of result.json by its dotted path, or
//               {"value": "model_flops_utilization", "times": 312, "unit": "TFLOP/s"}, or with
//               "minus": {"model.layers": 2}        minus the number with these changes
//     "columns": ["breakdown.compute_seconds"],      optional: shown beside the metric
//     "tolerance": 0.15,                             optional: the relative error that is accepted
//     "where": [{"product": ["strategy.column", "strategy.row"], "at_most": 8}],   optional
//     "groups": [{"name": "IC1", "set": {...},
//                 "calibration": {"point": "M4", "from": 0.1, "to": 2,
//                                 "set": {"edits": [{"devices": "**", "compute": "{value}x"}]}},
//                 "points": [{"name": "M4", "set": {...}, "published": 10.71,
//                             "relative_to": "M3", "allow_failure": true}],
//                 "grid": [{"path": "strategy.depth", "values": [1, 2, 4]},
//                          {"choices": [{"name": "two", "set": {...}}]}]}],
//     "orders": [["IC1/M2", "IC1/M3", "IC1/M4"]],     optional: the metric is published to rise
//     "pictures": [{"title": "IC1", "kind": "bars", "x": ["M2", "M3"],             optional
//                   "series": [{"name": "ATP", "points": ["IC1/M2", "IC1/M3"]}]}]
//   }
//
// Without "groups", the keys of one group stand beside the others. Changes are made in the order
// study, group, calibration, point, grid; later ones win. Points and grid multiply: a grid's axes
// give every combination of their values, the last axis varying fastest, named
// "POINT/KEY=VALUE/KEY=VALUE". Full names of points begin with "GROUP/" if the group has a name. A
// point is published as a number of the metric, or with "relative_to" as the ratio to another
// point's; points that a grid multiplies have no published figure. A calibration finds the value
// between "from" and "to" at which the metric of its point is as published, and puts it in the
// place of {value} for every point of the group; each group may have one. A "calibration" beside
// "groups" is for all groups without their own. A combination of a grid may be impossible (a mesh
// that does not fit); a point may not, unless it says "allow_failure"; and not all of them may be.
// Combinations that do not meet "where" (scenarios/evaluating/axes.h) are left out. "pictures" are
// panels for `sweep --svg` (scenarios/sweeping/study_picture.h): a series has a point for each x;
// its points need no full names (scenarios/sweeping/named_points.h), and without "x" what these
// differ in labels them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/axes.h"
#include "scenarios/evaluating/changes.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {

struct StudyMetric {
  std::string value;  // dotted path in the JSON of a result: "by_axis.row.seconds"
  double times = 1;
  std::string unit = {};
  Changes minus = {};
  Place place = {};

  std::string Title() const { return unit.empty() ? value : unit; }
  // Nothing if the result has no such number (an axis that this point lacks). The result with the
  // changes of `minus` is expected under the key "minus" of the other.
  std::optional<double> Of(const nlohmann::json& result) const;
  // The axis that the number is for: "row"; nothing for numbers of the whole step.
  std::optional<std::string> Axis() const;
};

struct StudyPoint {
  std::string name;  // full: "GROUP/POINT/VALUE"
  Changes changes;   // study's, group's, point's and grid's; the calibration's are apart
  std::optional<double> published;
  std::optional<size_t> relative_to;  // position in Study::points
  bool may_fail = false;
  size_t group = 0;  // position in Study::groups
  size_t changes_before_calibration = 0;
  Place place;
};

struct StudyCalibration {
  size_t point = 0;  // position in Study::points
  Changes changes;   // with {value}
  double from = 0;
  double to = 0;
  Place place;
};

struct StudyGroup {
  std::string name;
  std::optional<StudyCalibration> calibration;  // on a point of this group or of another
};

enum class PanelKind : uint8_t { kLines, kBars, kMap };

struct PanelSeries {
  std::string name;
  std::vector<size_t> points;  // positions in Study::points, one for each x
};

struct StudyPanel {
  std::string title;
  PanelKind kind = PanelKind::kLines;
  std::vector<std::string> x;  // labels, evenly spaced
  std::string x_title;
  std::string y_title;  // empty: the metric's
  bool log_y = false;
  bool ratios = false;  // to the points that points are relative to, not the metric
  std::vector<PanelSeries> series;
};

struct Study {
  std::string name;
  std::string description;
  std::string source;
  JsonDocument base;
  StudyMetric metric;
  std::vector<StudyMetric> columns;
  double tolerance = 0.15;
  std::vector<SpaceConstraint> constraints;
  size_t excluded = 0;  // combinations of grids that do not meet them
  std::vector<StudyGroup> groups;
  std::vector<StudyPoint> points;           // of all groups, in order
  std::vector<std::vector<size_t>> orders;  // positions in points; metric rises
  std::vector<StudyPanel> panels;
  // This many of each point's changes, at the beginning and at the end, are those of all points.
  size_t common_changes = 0;
  size_t later_changes = 0;
};

inline constexpr size_t kMostStudyPoints = 100000;
inline constexpr const char* kStudyValue = "{value}";  // stands for a calibrated value

// Makes one more change to every point, after all others: "simulator.fidelity=formula", as `run
// --set` takes it. Throws Error if it is not an assignment.
void ChangeAllPoints(Study& study, const std::string& assignment);

// What group, point and grid change in a point.
Changes OwnChanges(const Study& study, const StudyPoint& point);
// The paths that groups, points or grids change, in the order in which they come up.
std::vector<std::string> ParametersOf(const Study& study);

// The scenario of a point as JSON, with the calibrated value in the place of {value}; and after it,
// if the metric has "minus", the one whose number is subtracted.
std::vector<JsonDocument> ScenariosOf(const Study& study, const StudyPoint& point,
                                      std::optional<double> calibrated);

}  // namespace rehearse
