#include "scenarios/sweeping/study_shapes.h"

#include <string>
#include <vector>

#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/search_shapes.h"
#include "scenarios/sweeping/study.h"

namespace rehearse {
namespace {

JsonShape AnyNumber() {
  constexpr double kLargest = 1e300;
  return ANumber(-kLargest, kLargest);
}

JsonKey Set(Presence presence, const char* about) {
  return {"set", ChangesShape(), std::move(presence), about, R"({"training.batch": 512})"};
}

JsonKey CalibrationRow(const char* without, const char* about) {
  return {"calibration", ObjectOf(StudyCalibrationShape), Optional(without), about,
          R"({"point": "M4", "from": 0.1, "to": 2, )"
          R"("set": {"simulator.slowdown.gemm": "{value}"}})"};
}

JsonShape MetricOf(ObjectShapeOf table) {
  return Either({AText("number of result.json by its dotted path"), ObjectOf(table)});
}

std::vector<JsonKey> MetricRows() {
  return {{"value", AText("number of result.json by its dotted path"), Required(), "which number",
           "\"model_flops_utilization\""},
          {"times", AnyNumber(), Default("1"), "factor that turns it into the unit", "312"},
          {"unit", AText(), Default("\"\""), "the unit it is shown in", "\"TFLOP/s\""}};
}

// What a group has, here beside the others or there.
std::vector<JsonKey> GroupRows(const char* only) {
  return {
      {"points", ListOf(ObjectOf(PointShape)), Optional("the grid's"), "points listed one by one",
       R"([{"name": "M4", "set": {"strategy.depth": 4}, "published": 10.71}])", only},
      {"grid", ListOf(Either({ObjectOf(ValuesShape), ObjectOf(ChoicesShape)})),
       Optional("the points alone"),
       "axes; every combination of their values is a point, the last axis varying fastest",
       R"([{"path": "strategy.depth", "values": [1, 2, 4]}])", only}};
}

}  // namespace

const ObjectShape& StudyShape() {
  static const ObjectShape shape = [] {
    ObjectShape study = {
        "study",
        "Many scenarios that share a base, and the number that is read from each.",
        {SchemaForEditors(),
         {"name", AText(), Required(), "what reports call it", "\"depth\""},
         {"description", AText(), Default("\"\""), "for people", "\"how deep a grid pays\""},
         {"source", AText(), Default("\"\""), "where the published numbers are from",
          "\"arXiv 2305.13525\""},
         {"base", Either({AText("path of a scenario, from this file"), ObjectOf(ScenarioShape)}),
          Required(), "the scenario that the points change", "\"../axonn-weak-5b.json\""},
         Set(Optional("none"), "changes for all points, as --set takes them"),
         {"metric", MetricOf(MetricShape), Required(), "the number that is compared",
          "\"step_seconds\""},
         {"orders", ListOf(ListOf(AText("full name of a point"))), Default("[]"),
          "lists of points, in the order in which their published metric rises",
          R"([["IC1/M2", "IC1/M3"]])"},
         {"pictures", ListOf(ObjectOf(PanelShape)), Default("[]"),
          "panels that sweep --svg draws side by side",
          R"([{"title": "IC1", "kind": "bars", "x": ["M2", "M3"], )"
          R"("series": [{"name": "ATP", "points": ["IC1/M2", "IC1/M3"]}]}])"},
         {"columns", ListOf(MetricOf(ColumnShape)), Default("[]"),
          "numbers to show beside the metric", R"(["breakdown.compute_seconds"])"},
         {"tolerance", ANumber(0, 100), Default("0.15"), "the relative error that is accepted"},
         {"where", ListOf(ObjectOf(ConstraintShape)), Default("[]"),
          "conditions; combinations of a grid that do not meet them are left out",
          R"([{"product": ["strategy.column", "strategy.row"], "at_most": 8}])"},
         CalibrationRow("none", "calibration of all groups that have none of their own"),
         {"groups", ListOf(ObjectOf(GroupShape)), Optional("one, whose keys stand here"),
          "groups of points that have more in common", R"([{"name": "IC1", "points": []}])",
          kWithGroups}}};
    for (JsonKey& row : GroupRows(kWithout)) study.keys.push_back(std::move(row));
    return study;
  }();
  return shape;
}

const ObjectShape& ColumnShape() {
  static const ObjectShape shape = {"column", "A number of each point's result.", MetricRows()};
  return shape;
}

const ObjectShape& MetricShape() {
  static const ObjectShape shape = [] {
    ObjectShape metric = {"metric", "The number of each point's result that is compared.",
                          MetricRows()};
    metric.keys.push_back({"minus", ChangesShape(), Optional("nothing is subtracted"),
                           "subtract the number that the point gives with these changes",
                           R"({"model.layers": 2})"});
    return metric;
  }();
  return shape;
}

const ObjectShape& GroupShape() {
  static const ObjectShape shape = [] {
    ObjectShape group = {
        "group",
        "Points that have changes, or a calibration, in common.",
        {{"name", AText(), Required(), "prefix of its points' names", "\"IC1\""},
         Set(Optional("none"), "changes for its points"),
         CalibrationRow("the study's, or none", "a number that is fitted on one of its points")}};
    for (JsonKey& row : GroupRows("")) group.keys.push_back(std::move(row));
    return group;
  }();
  return shape;
}

const ObjectShape& StudyCalibrationShape() {
  static const ObjectShape shape = {
      "calibration of a study",
      "The value at which the metric of one point is as published.",
      {{"point", AText("name of a point"), Required(), "the point to fit", "\"M4\""},
       {"set", ChangesShape(), Required(), "changes that contain {value}",
        R"({"edits": [{"devices": "**", "compute": "{value}x"}]})"},
       {"from", AnyNumber(), Required(), "the smallest value that is tried", "0.1"},
       {"to", AnyNumber(), Required(), "the largest value that is tried", "2"}}};
  return shape;
}

const ObjectShape& PointShape() {
  static const ObjectShape shape = {
      "point",
      "One scenario of the study.",
      {{"name", AText(), Required(), "what reports call it", "\"M4\""},
       Set(Optional("none"), "the changes"),
       {"published", AnyNumber(), Optional("not published"),
        "the metric; with \"relative_to\", its ratio to the other point's", "10.71"},
       {"relative_to", AText("name of a point"), Optional("absolute"),
        "the point that \"published\" is relative to", "\"M3\""},
       {"allow_failure", TrueFalse(), Default("false"), "the point may turn out to be impossible",
        "true"}}};
  return shape;
}

const ObjectShape& PanelShape() {
  static const ObjectShape shape = {
      "panel",
      "A part of the study's picture, with axes of its own.",
      {{"title", AText(), Required(), "what is written above it", "\"IC1\""},
       {"kind", OneOf({"lines", "bars", "map"}), Default("\"lines\""),
        "lines, grouped bars, or a heat map with a row for each series"},
       {"x", ListOf(AText("label")), Required(), "labels, evenly spaced", R"(["M2", "M3"])"},
       {"x_title", AText(), Default("\"\""), "what the labels are", "\"GPUs\""},
       {"y_title", AText(), Optional("the metric's unit"), "what the values are", "\"s\""},
       {"log_y", TrueFalse(), Default("false"), "values on a logarithmic axis"},
       {"ratios", TrueFalse(), Default("false"),
        "draw ratios to the points that points are relative to"},
       {"series", ListOf(ObjectOf(SeriesShape)), Required(), "what is drawn",
        R"([{"name": "ATP", "points": ["IC1/M2", "IC1/M3"]}])"}}};
  return shape;
}

const ObjectShape& SeriesShape() {
  static const ObjectShape shape = {
      "series",
      "Points of the study that are drawn in one colour.",
      {{"name", AText(), Required(), "what the legend calls it", "\"ATP\""},
       {"points", ListOf(AText("full name of a point")), Required(), "one for each x",
        R"(["IC1/M2", "IC1/M3"])"}}};
  return shape;
}

}  // namespace rehearse
