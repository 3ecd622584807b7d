#include "scenarios/sweeping/study_shapes.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/axes.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/sweeping/study.h"
#include "sim/base/known_names.h"
#include "sim/report/result.h"

namespace rehearse {
namespace {

JsonShape AnyNumber() {
  constexpr double kLargest = 1e300;
  return ANumber(-kLargest, kLargest);
}

JsonKey Set(Presence presence, const char* about) {
  return {"set", ChangesShape(), std::move(presence), about, R"({"training.batch": 512})"};
}

// ---- Numbers of results -------------------------------------------------------------------------

// Only PlayStudy() knows which axes there are.
void CheckNumber(const JsonReader& reader, StudyMetric* metric) {
  const std::string& number = metric->value;
  if (number.empty()) reader.Expected("a number of the result such as \"step_seconds\"");
  metric->place = reader.place();
  std::vector<std::string> known = NumbersOfResults();
  const size_t first = number.find('.');
  const size_t last = number.rfind('.');
  if (first != last) {
    const std::string axis = number.substr(first + 1, last - first - 1);
    for (std::string& name : known)
      if (const size_t star = name.find('*'); star != std::string::npos)
        name.replace(star, 1, axis);
  }
  if (std::find(known.begin(), known.end(), number) != known.end()) return;
  reader.Fail(fmt::format("found {}, which is not a number of the result{}", QuotedJson(number),
                          KnownNames(number, known)));
}

void CheckMetric(const JsonReader& reader, StudyMetric* metric) {
  CheckNumber(reader.At("value"), metric);
}

FieldList<StudyMetric> MetricRows() {
  return {{"value", &StudyMetric::value, AText("number of result.json by its dotted path"),
           Required(), "which number", "\"model_flops_utilization\""},
          {"times", &StudyMetric::times, AnyNumber(), Usual(), "factor that turns it into the unit",
           "312"},
          {"unit", &StudyMetric::unit, AText(), Usual(), "the unit it is shown in", "\"TFLOP/s\""}};
}

const Fields<StudyMetric>& ColumnFields() {
  static const Fields<StudyMetric> fields("column", "A number of each point's result.",
                                          MetricRows(), CheckMetric);
  return fields;
}

const Fields<StudyMetric>& MetricFields() {
  static const Fields<StudyMetric> fields(
      "metric", "The number of each point's result that is compared.",
      {MetricRows(),
       {"minus", ChangesShape(), Optional("nothing is subtracted"),
        "subtract the number that the point gives with these changes", R"({"model.layers": 2})"}},
      CheckMetric);
  return fields;
}

// By its path alone, or as an object.
template <auto kFields>
void ReadMetric(const JsonReader& reader, StudyMetric* metric) {
  if (!reader.IsString()) {
    *metric = kFields().Read(reader);
    return;
  }
  metric->value = reader.String();
  CheckNumber(reader, metric);
}

template <auto kFields>
FieldShape AMetric() {
  return ReadBy<StudyMetric>(
      Either({AText("number of result.json by its dotted path"), ObjectOf(ShapeIn<kFields>)}),
      ReadMetric<kFields>,
      [](const StudyMetric& metric, nlohmann::ordered_json* to) { kFields().Write(metric, to); });
}

// ---- What is drawn ------------------------------------------------------------------------------

constexpr ValueName<PanelKind> kPanelKinds[] = {
    {"lines", PanelKind::kLines}, {"bars", PanelKind::kBars}, {"map", PanelKind::kMap}};

JsonShape SomePoints() { return AText("name of points, its beginning, or a pattern"); }

}  // namespace

const ObjectShape& PointsWhereShape() {
  static const ObjectShape shape = {
      "points where",
      "Points whose scenarios have these values.",
      {{"where", ChangesShape(), Required(),
        "paths of the scenario and their values, in which * is any text",
        R"({"cluster": "dgx-h100*"})"}}};
  return shape;
}

const Fields<PanelSeries>& SeriesFields() {
  static const Fields<PanelSeries> fields(
      "series", "Points of the study that are drawn in one colour.",
      {{"name", &PanelSeries::name, AText(), Required(), "what the legend calls it", "\"ATP\""},
       {"points",
        Either({SomePoints(), ObjectOf(PointsWhereShape),
                ListOf(Either({SomePoints(), ObjectOf(PointsWhereShape)}))}),
        Required(),
        "one for each x, in the study's order where several are meant: a full name, what names "
        "begin with up to a \"/\", a pattern in which * is any text, or values of their scenarios",
        R"(["IC1/M2", "IC1/M3"])"}});
  return fields;
}

const Fields<StudyPanel>& PanelFields() {
  static const Fields<StudyPanel> fields(
      "panel", "A part of the study's picture, with axes of its own.",
      {{"title", &StudyPanel::title, AText(), Required(), "what is written above it", "\"IC1\""},
       {"kind", &StudyPanel::kind, OneOf(kPanelKinds), Usual(),
        "lines, grouped bars, or a heat map with a row for each series"},
       {"x", &StudyPanel::x, ListOf(AText("label")),
        Optional("what the names of the first series' points differ in"), "labels, evenly spaced",
        R"(["M2", "M3"])"},
       {"x_title", &StudyPanel::x_title, AText(), Usual(), "what the labels are", "\"GPUs\""},
       {"y_title", &StudyPanel::y_title, AText(), Optional("the metric's unit"),
        "what the values are", "\"s\""},
       {"log_y", &StudyPanel::log_y, TrueFalse(), Usual(), "values on a logarithmic axis"},
       {"ratios", &StudyPanel::ratios, TrueFalse(), Usual(),
        "draw ratios to the points that points are relative to"},
       {"series", ListOf(ObjectOf(ShapeIn<SeriesFields>)), Required(), "what is drawn",
        R"([{"name": "ATP", "points": ["IC1/M2", "IC1/M3"]}])"}},
      [](const JsonReader& reader, StudyPanel* panel) {
        if (reader.Has("x") && panel->x.empty()) reader.At("x").Expected("at least one label");
      });
  return fields;
}

// ---- Points, and what they have in common -------------------------------------------------------

const Fields<StudyPoint>& PointFields() {
  static const Fields<StudyPoint> fields(
      "point", "One scenario of the study.",
      {{"name", &StudyPoint::name, AText(), Required(), "what reports call it", "\"M4\""},
       Set(Optional("none"), "the changes"),
       {"published", &StudyPoint::published, AnyNumber(), Optional("not published"),
        "the metric; with \"relative_to\", its ratio to the other point's", "10.71"},
       {"relative_to", AText("name of a point"), Optional("absolute"),
        "the point that \"published\" is relative to", "\"M3\""},
       {"allow_failure", &StudyPoint::may_fail, TrueFalse(), Usual(),
        "the point may turn out to be impossible", "true"}},
      [](const JsonReader& reader, StudyPoint* point) {
        if (point->name.empty()) reader.At("name").Expected("a name");
        point->place = reader.place();
      });
  return fields;
}

const Fields<StudyCalibration>& StudyCalibrationFields() {
  static const Fields<StudyCalibration> fields(
      "calibration of a study", "The value at which the metric of one point is as published.",
      {{"point", AText("name of a point"), Required(), "the point to fit", "\"M4\""},
       {"set", ChangesShape(), Required(), "changes that contain {value}",
        R"({"edits": [{"devices": "**", "compute": "{value}x"}]})"},
       {"from", &StudyCalibration::from, AnyNumber(), Required(),
        "the smallest value that is tried", "0.1"},
       {"to", &StudyCalibration::to, AnyNumber(), Required(), "the largest value that is tried",
        "2"}},
      [](const JsonReader& reader, StudyCalibration* calibration) {
        calibration->place = reader.place();
        if (!(calibration->from < calibration->to))
          reader.At("to").Expected("a number above \"from\"");
        if (reader.At("set").value().dump().find(kStudyValue) == std::string::npos)
          reader.At("set").Fail("nothing here contains {value}, the number to find");
      });
  return fields;
}

namespace {

JsonKey CalibrationRow(const char* without, const char* about) {
  return {"calibration", ObjectOf(ShapeIn<StudyCalibrationFields>), Optional(without), about,
          R"({"point": "M4", "from": 0.1, "to": 2, )"
          R"("set": {"simulator.slowdown.gemm": "{value}"}})"};
}

// What a group has, here beside the others or there.
template <typename T>
FieldList<T> GroupRows(const char* only) {
  return {{"points", ListOf(ObjectOf(ShapeIn<PointFields>)), Optional("the grid's"),
           "points listed one by one",
           R"([{"name": "M4", "set": {"strategy.depth": 4}, "published": 10.71}])", only},
          {"grid", ListOf(Either({ObjectOf(ValuesShape), ObjectOf(ChoicesShape)})),
           Optional("the points alone"),
           "axes; every combination of their values is a point, the last axis varying fastest",
           R"([{"path": "strategy.depth", "values": [1, 2, 4]}])", only}};
}

}  // namespace

const Fields<StudyGroup>& GroupFields() {
  static const Fields<StudyGroup> fields(
      "group", "Points that have changes, or a calibration, in common.",
      {{"name", &StudyGroup::name, AText(), Required(), "prefix of its points' names", "\"IC1\""},
       Set(Optional("none"), "changes for its points"),
       CalibrationRow("the study's, or none", "a number that is fitted on one of its points"),
       GroupRows<StudyGroup>("")},
      [](const JsonReader& reader, StudyGroup* group) {
        if (group->name.empty()) reader.At("name").Expected("a name");
      });
  return fields;
}

// ---- The study ----------------------------------------------------------------------------------

const Fields<Study>& StudyFields() {
  static const Fields<Study> fields(
      "study", "Many scenarios that share a base, and the number that is read from each.",
      {SchemaForEditors(),
       {"name", &Study::name, AText(), Required(), "what reports call it", "\"depth\""},
       {"description", &Study::description, AText(), Usual(), "for people",
        "\"how deep a grid pays\""},
       {"source", &Study::source, AText(), Usual(), "where the published numbers are from",
        "\"arXiv 2305.13525\""},
       {"base", Either({AText("path of a scenario, from this file"), ObjectOf(ScenarioShape)}),
        Required(), "the scenario that the points change", "\"../axonn-weak-5b.json\""},
       Set(Optional("none"), "changes for all points, as --set takes them"),
       {"metric", &Study::metric, AMetric<MetricFields>(), Required(),
        "the number that is compared", "\"step_seconds\""},
       {"orders", ListOf(ListOf(AText("full name of a point"))), Default("[]"),
        "lists of points, in the order in which their published metric rises",
        R"([["IC1/M2", "IC1/M3"]])"},
       {"pictures", ListOf(ObjectOf(ShapeIn<PanelFields>)), Default("[]"),
        "panels that sweep --svg draws side by side",
        R"([{"title": "IC1", "kind": "bars", "x": ["M2", "M3"], )"
        R"("series": [{"name": "ATP", "points": ["IC1/M2", "IC1/M3"]}]}])"},
       {"columns", &Study::columns, ListOf(AMetric<ColumnFields>()), Usual(),
        "numbers to show beside the metric", R"(["breakdown.compute_seconds"])"},
       {"tolerance", &Study::tolerance, ANumber(0, 100), Usual(),
        "the relative error that is accepted"},
       {"where", &Study::constraints, ListOf(ObjectIn<ConstraintFields>()), Usual(),
        "conditions; combinations of a grid that do not meet them are left out",
        R"([{"product": ["strategy.column", "strategy.row"], "at_most": 8}])"},
       CalibrationRow("none", "calibration of all groups that have none of their own"),
       {"groups", ListOf(ObjectOf(ShapeIn<GroupFields>)), Optional("one, whose keys stand here"),
        "groups of points that have more in common", R"([{"name": "IC1", "points": []}])",
        kWithGroups},
       GroupRows<Study>(kWithout)});
  return fields;
}

}  // namespace rehearse
