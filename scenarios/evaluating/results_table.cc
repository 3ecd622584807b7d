#include "scenarios/evaluating/results_table.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

void SortKept(std::vector<KeptPoint>& points, const std::string& number, const std::string& file) {
  const double sign = MoreIsBetter(number) ? -1 : 1;
  const bool none = std::none_of(points.begin(), points.end(), [&](const KeptPoint& point) {
    return NumberAt(number, point.result).has_value();
  });
  if (none) {
    throw Error({file, 0, ""}, fmt::format("no point has a number \"{}\"{}", number,
                                           KnownNames(number, NumbersOfEveryResult())));
  }
  std::stable_sort(points.begin(), points.end(), [&](const KeptPoint& a, const KeptPoint& b) {
    const std::optional<double> one = NumberAt(number, a.result);
    const std::optional<double> other = NumberAt(number, b.result);
    if (!one || !other) return one.has_value() && !other.has_value();
    return sign * *one < sign * *other;
  });
}

// Numbers and texts of results; the table leaves out lists, except for the busiest link.
Json FlatResult(const KeptPoint& point) {
  Json result = point.result;
  if (!result.is_object()) return Json::object();
  for (const char* key : {"schema", "simulator"}) result.erase(key);
  const auto links = result.find("links");
  if (links != result.end() && links->is_array() && !links->empty())
    result["busiest_link"] = {{"name", links->front()["name"]},
                              {"utilization", links->front()["utilization"]}};
  return result;
}

}  // namespace

std::vector<KeptPoint> ReadKeptPoints(ResultsFile& file, const ResultsView& view,
                                      const std::string& name) {
  std::vector<KeptPoint> points;
  file.ForEach([&](const KeptPoint& point) { points.push_back(point); });
  if (points.empty()) throw Error({name, 0, ""}, "has no points yet");
  if (!view.sort.empty()) SortKept(points, view.sort, name);
  if (view.top > 0 && points.size() > view.top)
    points.erase(points.begin() + static_cast<ptrdiff_t>(view.top), points.end());
  return points;
}

DataTable TableOf(const std::vector<KeptPoint>& points) {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  bool is_calibrated = false;
  std::vector<Json> results;
  results.reserve(points.size());
  for (const KeptPoint& point : points) {
    for (const auto& [path, value] : point.parameters.items())
      if (seen.insert(path).second) paths.push_back(path);
    is_calibrated = is_calibrated || point.calibrated.has_value();
    results.push_back(FlatResult(point));
  }
  const DataTable numbers = FlatTable(results);
  std::vector<std::vector<Json>> values(paths.size());
  for (size_t i = 0; i < paths.size(); ++i)
    for (const KeptPoint& point : points) {
      const auto found = point.parameters.find(paths[i]);
      values[i].push_back(found == point.parameters.end() ? Json() : *found);
    }

  std::vector<DataColumn> columns = {{"study"}, {"point"}};
  for (size_t i = 0; i < paths.size(); ++i) columns.push_back({paths[i], KindOfAll(values[i])});
  if (is_calibrated) columns.push_back({"calibrated", CellKind::kNumber});
  columns.push_back({"status"});
  columns.push_back({"reason"});
  const std::vector<DataColumn> first = columns;
  columns.insert(columns.end(), numbers.columns().begin(), numbers.columns().end());
  DataTable table(columns);
  for (size_t row = 0; row < points.size(); ++row) {
    const KeptPoint& point = points[row];
    std::vector<DataCell> cells = {point.study, point.point};
    for (size_t i = 0; i < paths.size(); ++i)
      cells.push_back(CellOf(values[i][row], first[2 + i].kind));
    if (is_calibrated) cells.emplace_back(point.calibrated);
    cells.emplace_back(point.reason ? "impossible" : "done");
    cells.emplace_back(point.reason);
    const std::vector<DataCell>& rest = numbers.rows()[row];
    cells.insert(cells.end(), rest.begin(), rest.end());
    table.Add(std::move(cells));
  }
  return table;
}

std::string ToText(const std::vector<KeptPoint>& points, const std::string& sort) {
  std::vector<std::vector<std::string>> rows = {
      {"study", "point", "step", "tokens/s", "MFU", "memory"}};
  const bool has_sort = !sort.empty() && sort != "step_seconds";
  if (has_sort) rows[0].push_back(sort);
  size_t impossible = 0;
  for (const KeptPoint& point : points) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {VisibleText(point.study), VisibleText(point.point)};
    if (point.reason) {
      ++impossible;
      row.emplace_back("impossible");
      continue;
    }
    const auto number = [&](const char* name) { return NumberAt(name, point.result).value_or(0); };
    double memory = 0;
    for (const char* part : {"parameters", "gradients", "optimizer", "activations", "buffers"})
      memory += NumberAt(std::string("memory.") + part, point.result).value_or(0);
    row.push_back(Print(Seconds(number("step_seconds"))));
    row.push_back(fmt::format("{:.0f}", number("tokens_per_second")));
    row.push_back(fmt::format("{:.1f} %", 100 * number("model_flops_utilization")));
    row.push_back(Print(Bytes(memory)));
    if (has_sort) {
      const std::optional<double> value = NumberAt(sort, point.result);
      row.push_back(value ? fmt::format("{:.4g}", *value) : "");
    }
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += i < 2 ? fmt::format("{:<{}}  ", row[i], widths[i])
                    : fmt::format("{:>{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  text += fmt::format("\n{} points", points.size());
  if (impossible > 0) text += fmt::format(", {} impossible (--format csv says why)", impossible);
  return text + "\n";
}

}  // namespace rehearse
