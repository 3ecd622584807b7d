#include "scenarios/sweeping/study_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string Number(std::optional<double> value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

// A ratio to another point is marked, for people: it stands in the column of the metric.
enum class Ratios : uint8_t { kMarked, kBare };

std::string Percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::optional<double> ValueOf(const Study& study, const Sweep& sweep, size_t point) {
  const auto metric = [&](size_t i) -> std::optional<double> {
    if (!sweep.points[i].error.empty()) return std::nullopt;
    return study.metric.Of(sweep.points[i].result);
  };
  const std::optional<double> own = metric(point);
  if (!study.points[point].relative_to || !own) return own;
  const std::optional<double> other = metric(*study.points[point].relative_to);
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
      const auto metric = [&](size_t point) {
        return sweep.points[point].error.empty() ? study.metric.Of(sweep.points[point].result)
                                                 : std::nullopt;
      };
      const std::optional<double> lower = metric(rising[i]);
      const std::optional<double> upper = metric(rising[i + 1]);
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

Row Header(const Study& study) {
  Row header = {"point", study.metric.Title(), "published", "error"};
  for (const StudyMetric& column : study.columns) header.push_back(column.Title());
  return header;
}

Row RowOf(const Study& study, const Sweep& sweep, const PublishedComparison& comparison, size_t i,
          Ratios ratios) {
  const ComparedPoint& compared = comparison.points[i];
  const StudyPoint& point = study.points[i];
  const bool failed = !sweep.points[i].error.empty();
  std::string error = compared.error ? Percent(*compared.error) : "";
  if (compared.calibrates) error = "calibrated";
  const auto figure = [&](std::optional<double> value) {
    const bool marks = value && point.relative_to && ratios == Ratios::kMarked;
    return Number(value) + (marks ? "x" : "");
  };
  Row row = {VisibleText(point.name), failed ? "impossible" : figure(compared.value),
             figure(point.published), error};
  for (const auto& column : compared.columns) row.push_back(Number(column));
  return row;
}

std::vector<Row> Table(const Study& study, const Sweep& sweep,
                       const PublishedComparison& comparison, Ratios ratios) {
  std::vector<Row> rows = {Header(study)};
  for (size_t i = 0; i < study.points.size(); ++i)
    rows.push_back(RowOf(study, sweep, comparison, i, ratios));
  return rows;
}

// One line each; nothing where there is nothing to compare with.
std::vector<std::string> Verdicts(const Study& study, const Sweep& sweep,
                                  const PublishedComparison& comparison) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < study.groups.size(); ++i) {
    if (!sweep.calibrated[i]) continue;
    const StudyPoint& point = study.points[study.groups[i].calibration->point];
    if (point.group == i)
      lines.push_back(fmt::format("{{value}} is {} by {}", *sweep.calibrated[i], point.name));
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

Json JsonOf(std::optional<double> value) { return value ? Json(*value) : Json(); }

}  // namespace

PublishedComparison Compare(const Study& study, const Sweep& sweep) {
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
  return comparison;
}

std::string ToText(const Study& study, const Sweep& sweep, const PublishedComparison& comparison) {
  const std::vector<Row> rows = Table(study, sweep, comparison, Ratios::kMarked);
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text =
      fmt::format("{}   {} points\n{}\n", study.name, study.points.size(), study.description);
  for (const Row& row : rows) {
    std::string line = fmt::format("\n  {:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1);
  }
  text += "\n";
  for (size_t i = 0; i < sweep.points.size(); ++i)
    if (!sweep.points[i].error.empty())
      text += fmt::format("\n{} is impossible: {}", study.points[i].name, sweep.points[i].error);
  for (const std::string& line : Verdicts(study, sweep, comparison)) text += "\n" + line;
  return VisibleLines(text + (text.back() == '\n' ? "" : "\n"));
}

std::string ToMarkdown(const Study& study, const Sweep& sweep,
                       const PublishedComparison& comparison) {
  std::string text;
  for (const Row& row : Table(study, sweep, comparison, Ratios::kMarked)) {
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

std::string ToCsv(const Study& study, const Sweep& sweep, const PublishedComparison& comparison) {
  std::string text;
  for (const Row& row : Table(study, sweep, comparison, Ratios::kBare)) {
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + CsvCell(row[i]);
    text += "\n";
  }
  return text;
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
  json["points"] = Json::array();
  for (size_t i = 0; i < study.points.size(); ++i) {
    const ComparedPoint& compared = comparison.points[i];
    const PointOutcome& outcome = sweep.points[i];
    Json point = {{"name", study.points[i].name},
                  {"value", JsonOf(compared.value)},
                  {"published", JsonOf(study.points[i].published)},
                  {"error", JsonOf(compared.error)},
                  {"calibrates", compared.calibrates}};
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
