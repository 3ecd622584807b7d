#include "scenarios/sweeping/study_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/visible_text.h"
#include "sim/report/result.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

// Four digits; more where they would be 4.072e+04 otherwise.
std::string Number(std::optional<double> value) {
  if (!value) return "";
  const bool is_long = std::abs(*value) >= 9999.5 && std::abs(*value) < 999'999.5;
  return is_long ? fmt::format("{:.0f}", *value) : fmt::format("{:.4g}", *value);
}

std::string Percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

// Of the point itself.
std::optional<double> MetricOf(const Study& study, const Sweep& sweep, size_t point) {
  if (!sweep.points[point].error.empty()) return std::nullopt;
  return study.metric.Of(sweep.points[point].result);
}

std::optional<double> ValueOf(const Study& study, const Sweep& sweep, size_t point) {
  const std::optional<double> own = MetricOf(study, sweep, point);
  if (!study.points[point].relative_to || !own) return own;
  const std::optional<double> other = MetricOf(study, sweep, *study.points[point].relative_to);
  if (!other || *other == 0) return std::nullopt;
  return *own / *other;
}

// Figures that can be compared with each other: by the metric itself, or relative to the same
// point.
struct Figure {
  size_t point = 0;
  std::optional<size_t> relative_to;
  double published = 0;
  double value = 0;
};

std::vector<Figure> FiguresOf(const Study& study, const PublishedComparison& comparison,
                              size_t group) {
  std::vector<Figure> figures;
  std::vector<size_t> references;
  for (size_t i = 0; i < study.points.size(); ++i) {
    const StudyPoint& point = study.points[i];
    if (point.group != group || !point.published || !comparison.points[i].value) continue;
    figures.push_back({i, point.relative_to, *point.published, *comparison.points[i].value});
    if (point.relative_to &&
        std::find(references.begin(), references.end(), *point.relative_to) == references.end())
      references.push_back(*point.relative_to);
  }
  for (const size_t reference : references) figures.push_back({reference, reference, 1, 1});
  return figures;
}

void AddPairsOfGroup(const Study& study, size_t group, PublishedComparison& comparison) {
  const std::vector<Figure> figures = FiguresOf(study, comparison, group);
  for (size_t a = 0; a < figures.size(); ++a)
    for (size_t b = a + 1; b < figures.size(); ++b) {
      if (figures[a].relative_to != figures[b].relative_to) continue;
      const bool rises = figures[a].published < figures[b].published;
      const Figure& lower = rises ? figures[a] : figures[b];
      const Figure& upper = rises ? figures[b] : figures[a];
      if (upper.published - lower.published <= kTie * std::abs(upper.published)) continue;
      comparison.pairs.push_back({lower.point, upper.point, lower.value < upper.value});
    }
}

void AddOrders(const Study& study, const Sweep& sweep, PublishedComparison& comparison) {
  for (const std::vector<size_t>& rising : study.orders)
    for (size_t i = 0; i + 1 < rising.size(); ++i) {
      if (sweep.points[rising[i]].left_out || sweep.points[rising[i + 1]].left_out) continue;
      const std::optional<double> lower = MetricOf(study, sweep, rising[i]);
      const std::optional<double> upper = MetricOf(study, sweep, rising[i + 1]);
      comparison.pairs.push_back({rising[i], rising[i + 1], lower && upper && *lower < *upper});
    }
}

void Judge(const Study& study, PublishedComparison& comparison) {
  std::vector<double> sizes;
  double worst = -1;
  for (size_t i = 0; i < study.points.size(); ++i) {
    const ComparedPoint& point = comparison.points[i];
    if (!point.error || point.calibrates) continue;
    const double size = std::abs(*point.error);
    sizes.push_back(size);
    comparison.within += size <= study.tolerance ? 1 : 0;
    if (size > worst) {
      worst = size;
      comparison.worst = i;
    }
  }
  comparison.judged = sizes.size();
  if (sizes.empty()) return;
  std::sort(sizes.begin(), sizes.end());
  comparison.median = (sizes[(sizes.size() - 1) / 2] + sizes[sizes.size() / 2]) / 2;
}

bool IsPublished(const Study& study) {
  return std::any_of(study.points.begin(), study.points.end(),
                     [](const StudyPoint& point) { return point.published.has_value(); });
}

Row Header(const Study& study) {
  Row header = {"point", study.metric.Title()};
  if (IsPublished(study)) header.insert(header.end(), {"published", "error"});
  for (const StudyMetric& column : study.columns) header.push_back(column.Title());
  return header;
}

Row RowOf(const Study& study, const Sweep& sweep, const PublishedComparison& comparison, size_t i) {
  const ComparedPoint& compared = comparison.points[i];
  const StudyPoint& point = study.points[i];
  const bool failed = !sweep.points[i].error.empty();
  // A ratio to another point is marked, as it is in the metric's column.
  const auto figure = [&](std::optional<double> value) {
    return Number(value) + (value && point.relative_to ? "x" : "");
  };
  const bool is_best = comparison.best == i;
  Row row = {VisibleText(point.name) + (is_best ? " *" : ""),
             failed ? "impossible" : figure(compared.value)};
  if (IsPublished(study)) {
    row.push_back(figure(point.published));
    row.push_back(compared.calibrates ? "calibrated"
                  : compared.error    ? Percent(*compared.error)
                                      : "");
  }
  for (const auto& column : compared.columns) row.push_back(Number(column));
  return row;
}

std::vector<Row> ShownTable(const Study& study, const Sweep& sweep,
                            const PublishedComparison& comparison) {
  std::vector<Row> rows = {Header(study)};
  for (const size_t i : comparison.order) rows.push_back(RowOf(study, sweep, comparison, i));
  return rows;
}

// What the scenario of each point has at the paths that points change, objects value by value; null
// if it has nothing there.
struct Parameters {
  std::vector<std::string> paths;
  std::map<std::string, std::vector<Json>> values;  // by path, then point

  void Add(const std::string& path, const nlohmann::json& value, size_t point, size_t points) {
    if (value.is_object() && !value.empty()) {
      for (const auto& [key, part] : value.items())
        Add(fmt::format("{}.{}", path, key), part, point, points);
      return;
    }
    const auto [found, is_new] = values.try_emplace(path, points);
    if (is_new) paths.push_back(path);
    found->second[point] = value;
  }
};

Parameters ParametersOf(const Study& study, const Sweep& sweep) {
  Parameters parameters;
  const std::vector<std::string> changed = ParametersOf(study);
  for (size_t i = 0; i < study.points.size() && !changed.empty(); ++i) {
    const StudyPoint& point = study.points[i];
    try {
      const JsonDocument scenario =
          ScenariosOf(study, point, sweep.calibrated[point.group]).front();
      for (const std::string& path : changed) {
        nlohmann::json value = ValueAt(scenario.value(), path);
        if (value.is_null()) value = scenario.ValueInside(path);
        if (!value.is_null()) parameters.Add(path, value, i, study.points.size());
      }
    } catch (const Error&) {
      // If the changes cannot be made, the point's status says so.
    }
  }
  return parameters;
}

// One line each; empty if there is nothing to compare with.
std::vector<std::string> Verdicts(const Study& study, const Sweep& sweep,
                                  const PublishedComparison& comparison) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < study.groups.size(); ++i) {
    if (!sweep.calibrated[i]) continue;
    const StudyPoint& point = study.points[study.groups[i].calibration->point];
    if (point.group == i)
      lines.push_back(fmt::format("{{value}} is {} by {}", *sweep.calibrated[i], point.name));
  }
  if (comparison.best) {
    const StudyPoint& best = study.points[*comparison.best];
    lines.push_back(fmt::format("* the best is {}: {} {}", best.name, study.metric.Title(),
                                Number(study.metric.Of(sweep.points[*comparison.best].result))));
  }
  if (comparison.judged > 0)
    lines.push_back(fmt::format(
        "{} of {} within {:g} %; median error {:.1f} %, worst {} ({})", comparison.within,
        comparison.judged, 100 * study.tolerance, 100 * comparison.median,
        Percent(*comparison.points[comparison.worst].error), study.points[comparison.worst].name));
  if (comparison.pairs.empty()) return lines;
  size_t right = 0;
  std::string wrong;
  for (const OrderedPair& pair : comparison.pairs) {
    right += pair.right ? 1 : 0;
    if (!pair.right)
      wrong += fmt::format("{}{} < {}", wrong.empty() ? "; wrong: " : ", ",
                           study.points[pair.lower].name, study.points[pair.upper].name);
  }
  lines.push_back(fmt::format("{} of {} orders right{}", right, comparison.pairs.size(), wrong));
  return lines;
}

// The best first, by a number of results; points without it, and those of equal ones, as they were.
void SortPoints(const Study& study, const Sweep& sweep, const std::string& number,
                PublishedComparison& comparison) {
  const double sign = MoreIsBetter(number) ? -1 : 1;
  std::map<size_t, double> costs;
  for (const size_t i : comparison.order) {
    if (!sweep.points[i].error.empty()) continue;
    if (const auto value = NumberAt(number, sweep.points[i].result)) costs[i] = sign * *value;
  }
  if (costs.empty() && !comparison.order.empty()) {
    throw Error(fmt::format("--sort: no point of study \"{}\" has a number \"{}\"{}", study.name,
                            number, KnownNames(number, NumbersOfEveryResult())));
  }
  std::stable_sort(comparison.order.begin(), comparison.order.end(), [&](size_t a, size_t b) {
    const auto one = costs.find(a);
    const auto other = costs.find(b);
    if (one == costs.end() || other == costs.end())
      return one != costs.end() && other == costs.end();
    return one->second < other->second;
  });
}

void FindBest(const Study& study, const Sweep& sweep, bool is_sorted,
              PublishedComparison& comparison) {
  if (comparison.order.empty() || (IsPublished(study) && !is_sorted)) return;
  if (is_sorted) {
    comparison.best = comparison.order.front();
    return;
  }
  const bool more_is_better = MoreIsBetter(study.metric.value);
  std::optional<double> best;
  for (const size_t i : comparison.order) {
    const std::optional<double> metric = MetricOf(study, sweep, i);
    if (!metric || (best && (more_is_better ? *metric <= *best : *metric >= *best))) continue;
    best = metric;
    comparison.best = i;
  }
}

Json JsonOf(std::optional<double> value) { return value ? Json(*value) : Json(); }

}  // namespace

PublishedComparison Compare(const Study& study, const Sweep& sweep, const std::string& sort) {
  PublishedComparison comparison;
  for (size_t i = 0; i < study.points.size(); ++i) {
    ComparedPoint& point = comparison.points.emplace_back();
    point.value = ValueOf(study, sweep, i);
    const std::optional<double>& published = study.points[i].published;
    if (point.value && published && *published != 0) point.error = *point.value / *published - 1;
    const auto& calibration = study.groups[study.points[i].group].calibration;
    point.calibrates = calibration && calibration->point == i;
    for (const StudyMetric& column : study.columns)
      point.columns.push_back(sweep.points[i].error.empty() ? column.Of(sweep.points[i].result)
                                                            : std::nullopt);
  }
  for (size_t group = 0; group < study.groups.size(); ++group)
    AddPairsOfGroup(study, group, comparison);
  AddOrders(study, sweep, comparison);
  Judge(study, comparison);
  for (size_t i = 0; i < study.points.size(); ++i)
    if (!sweep.points[i].left_out) comparison.order.push_back(i);
  if (!sort.empty()) SortPoints(study, sweep, sort, comparison);
  FindBest(study, sweep, !sort.empty(), comparison);
  return comparison;
}

std::string ToText(const Study& study, const Sweep& sweep, const PublishedComparison& comparison) {
  const std::vector<Row> rows = ShownTable(study, sweep, comparison);
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  const size_t done = study.points.size() - sweep.left_out;
  std::string text = fmt::format(
      "{}   {} points{}\n{}{}", study.name, done,
      sweep.left_out == 0 ? ""
                          : fmt::format(" of {}: {}", study.points.size(),
                                        sweep.interrupted > 0 ? "interrupted" : sweep.shard.Text()),
      study.description, study.description.empty() ? "" : "\n");
  if (study.excluded > 0)
    text += fmt::format("{} combinations do not meet \"where\"\n", study.excluded);
  for (const Row& row : rows) {
    std::string line = fmt::format("\n  {:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1);
  }
  text += "\n";
  for (const size_t i : comparison.order)
    if (!sweep.points[i].error.empty())
      text += fmt::format("\n{} is impossible: {}", study.points[i].name, sweep.points[i].error);
  for (const std::string& line : Verdicts(study, sweep, comparison)) text += "\n" + line;
  return VisibleLines(text + (text.back() == '\n' ? "" : "\n"));
}

std::string ToMarkdown(const Study& study, const Sweep& sweep,
                       const PublishedComparison& comparison) {
  std::string text;
  for (const Row& row : ShownTable(study, sweep, comparison)) {
    const bool is_header = text.empty();
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (!is_header) continue;
    text += "| --- |";
    for (size_t i = 1; i < row.size(); ++i) text += " ---: |";
    text += "\n";
  }
  for (const std::string& line : Verdicts(study, sweep, comparison)) text += "\n" + line + ".\n";
  return text;
}

DataTable TableOf(const Study& study, const Sweep& sweep, const PublishedComparison& comparison) {
  const Parameters parameters = ParametersOf(study, sweep);
  const auto any_point = [&](const auto& condition) {
    return std::any_of(study.points.begin(), study.points.end(), condition);
  };
  const bool has_groups =
      any_point([&](const StudyPoint& point) { return !study.groups[point.group].name.empty(); });
  const bool is_calibrated =
      any_point([&](const StudyPoint& point) { return sweep.calibrated[point.group].has_value(); });
  const bool is_relative =
      any_point([](const StudyPoint& point) { return point.relative_to.has_value(); });
  const bool is_published = IsPublished(study);

  std::vector<DataColumn> columns = {{"point", CellKind::kText}};
  if (has_groups) columns.push_back({"group", CellKind::kText});
  for (const std::string& path : parameters.paths)
    columns.push_back({path, KindOfAll(parameters.values.at(path))});
  if (is_calibrated) columns.push_back({"calibrated", CellKind::kNumber});
  columns.push_back({"status", CellKind::kText});
  columns.push_back({"reason", CellKind::kText});
  columns.push_back({study.metric.Title(), CellKind::kNumber});
  if (is_relative) columns.push_back({"relative_to", CellKind::kText});
  if (is_relative) columns.push_back({"ratio", CellKind::kNumber});
  if (is_published) columns.push_back({"published", CellKind::kNumber});
  if (is_published) columns.push_back({"relative_error", CellKind::kNumber});
  if (is_published && is_calibrated) columns.push_back({"calibrates", CellKind::kTruth});
  for (const StudyMetric& column : study.columns)
    columns.push_back({column.Title(), CellKind::kNumber});
  if (comparison.best) columns.push_back({"best", CellKind::kTruth});

  DataTable table(columns);
  const size_t first_parameter = has_groups ? 2 : 1;
  for (const size_t i : comparison.order) {
    const StudyPoint& point = study.points[i];
    const ComparedPoint& compared = comparison.points[i];
    const std::string& error = sweep.points[i].error;
    std::vector<DataCell> row = {point.name};
    if (has_groups) row.emplace_back(study.groups[point.group].name);
    for (size_t path = 0; path < parameters.paths.size(); ++path)
      row.push_back(CellOf(parameters.values.at(parameters.paths[path])[i],
                           columns[first_parameter + path].kind));
    if (is_calibrated) row.emplace_back(sweep.calibrated[point.group]);
    row.emplace_back(error.empty() ? "done" : "impossible");
    row.push_back(error.empty() ? DataCell() : DataCell(error));
    row.emplace_back(MetricOf(study, sweep, i));
    if (is_relative) {
      row.push_back(point.relative_to ? DataCell(study.points[*point.relative_to].name)
                                      : DataCell());
      row.push_back(point.relative_to ? DataCell(compared.value) : DataCell());
    }
    if (is_published) {
      row.emplace_back(point.published);
      row.emplace_back(compared.error);
      if (is_calibrated) row.emplace_back(compared.calibrates);
    }
    for (const std::optional<double>& column : compared.columns) row.emplace_back(column);
    if (comparison.best) row.emplace_back(comparison.best == i);
    table.Add(std::move(row));
  }
  return table;
}

Json ToJson(const Study& study, const Sweep& sweep, const PublishedComparison& comparison) {
  Json json = {{"schema", "rehearse.study.v1"}, {"study", study.name},
               {"metric", study.metric.value},  {"times", study.metric.times},
               {"unit", study.metric.unit},     {"tolerance", study.tolerance}};
  for (const auto& [path, value] : study.metric.minus) json["minus"][path] = value;
  json["groups"] = Json::array();
  for (size_t i = 0; i < study.groups.size(); ++i)
    json["groups"].push_back(
        {{"name", study.groups[i].name}, {"calibrated", JsonOf(sweep.calibrated[i])}});
  const Parameters parameters = ParametersOf(study, sweep);
  if (sweep.left_out > 0) json["points_left_out"] = sweep.left_out;
  json["points"] = Json::array();
  if (study.excluded > 0) json["combinations_left_out"] = study.excluded;
  if (comparison.best) json["best"] = study.points[*comparison.best].name;
  for (const size_t i : comparison.order) {
    const ComparedPoint& compared = comparison.points[i];
    const PointOutcome& outcome = sweep.points[i];
    Json point = {{"name", study.points[i].name},
                  {"value", JsonOf(compared.value)},
                  {"published", JsonOf(study.points[i].published)},
                  {"error", JsonOf(compared.error)},
                  {"calibrates", compared.calibrates}};
    for (const std::string& path : parameters.paths) {
      const Json& value = parameters.values.at(path)[i];
      if (!value.is_null()) point["parameters"][path] = value;
    }
    for (size_t column = 0; column < study.columns.size(); ++column)
      point["columns"][study.columns[column].value] = JsonOf(compared.columns[column]);
    point["scenario_hash"] = outcome.scenario_hash;
    if (!outcome.error.empty()) point["impossible"] = outcome.error;
    if (outcome.error.empty()) point["timeline_hash"] = outcome.result["timeline_hash"];
    json["points"].push_back(std::move(point));
  }
  json["orders"] = Json::array();
  for (const OrderedPair& pair : comparison.pairs)
    json["orders"].push_back({{"lower", study.points[pair.lower].name},
                              {"upper", study.points[pair.upper].name},
                              {"right", pair.right}});
  return json;
}

}  // namespace rehearse
