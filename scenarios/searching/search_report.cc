#include "scenarios/searching/search_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/searching/search_groups.h"
#include "scenarios/searching/search_quality.h"
#include "scenarios/searching/search_runs.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

Seconds ExposedOf(const SimulatedPoint& point) {
  Seconds sum;
  for (const auto& [axis, seconds] : point.exposed) sum += seconds;
  return sum;
}

Seconds PartOf(const SimulatedPoint& point, const std::string& name) {
  for (const auto& [part, seconds] : PartsOf(point))
    if (part == name) return seconds;
  return Seconds(0);
}

std::string Signed(Seconds seconds) {
  return (seconds < Seconds(0) ? "-" : "+") + Print(Seconds(std::abs(seconds.value())));
}

std::string Counted(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

bool HasOwnUnits(const Search& search) { return search.formula == FormulaKind::kAxonnAgnostic; }

std::string FormulaText(const Search& search, double value) {
  if (search.formula == FormulaKind::kClosedForms || search.formula == FormulaKind::kComposed) {
    const Objective& objective = search.objectives.front();
    return Print(objective, objective.more_is_better ? -value : value);
  }
  return HasOwnUnits(search) ? fmt::format("{:.4g} B", value) : Print(Seconds(value));
}

std::string Headline(const Search& search, const FoundPoints& found) {
  std::string axes;
  for (const SpaceAxis& axis : search.space.axes) {
    axes += fmt::format("{}{} ({})", axes.empty() ? "" : ", ", axis.name,
                        Counted(static_cast<double>(axis.choices.size())));
  }
  size_t excluded = 0;
  for (const auto& [reason, points] : found.excluded) excluded += points.points;
  const double size = search.space.Size();
  std::string text = fmt::format("Space: {}: {} points", axes, Counted(size));
  if (static_cast<double>(found.looked_at) < size) {
    const bool is_exhaustive = search.walk.method == WalkMethod::kExhaustive;
    text += fmt::format(
        ", {} of them looked at{}", Counted(static_cast<double>(found.looked_at)),
        is_exhaustive ? std::string()
                      : fmt::format(" ({}, seed {})", Name(search.walk.method), search.walk.seed));
  }
  text += fmt::format("; {} impossible", Counted(static_cast<double>(excluded)));
  if (search.decide != Decision::kFormula)
    text += fmt::format(", {} simulated", Counted(static_cast<double>(found.simulated)));
  return text + "\n";
}

std::string BestSentence(const Search& search, const FoundPoints& found) {
  const FoundPoint& best = found.points.front();
  const std::string name = VisibleText(search.space.NameOf(best.point));
  if (!best.simulated)
    return fmt::format("The best by the formula {} is {}: {}\n", Name(search.formula), name,
                       FormulaText(search, best.formula.value_or(0)));
  std::string values;
  for (size_t i = 0; i < search.objectives.size(); ++i)
    values += fmt::format("{}{}", i > 0 ? ", " : "",
                          Print(search.objectives[i], best.simulated->values[i]));
  return fmt::format("The best{} is {}: {}\n",
                     search.objectives.size() > 1 ? " in " + search.objectives.front().name : "",
                     name, values);
}

std::string FormulaSentence(const Search& search, const FoundPoints& found) {
  if (!found.shard.IsWhole())
    return fmt::format("This is only {}: nothing is known about the others' simulations.\n",
                       found.shard.Text());
  if (search.decide != Decision::kBoth || !found.worst_kept) return "";
  const auto left = static_cast<double>(found.points.size() - found.simulated);
  if (!found.best_left)
    return fmt::format("The formula {} left nothing out.\n", Name(search.formula));
  return fmt::format(
      "The formula {} kept what it puts at {} or less, besides neighbours of the best; it left out "
      "{}, the best of them at {}; --decide simulation simulates these too.\n",
      Name(search.formula), FormulaText(search, *found.worst_kept), Counted(left),
      FormulaText(search, *found.best_left));
}

std::string Rows(const Search& search, const FoundPoints& found, size_t top) {
  std::vector<const FoundPoint*> shown;
  const bool is_front = search.objectives.size() > 1 && found.points.front().simulated;
  for (const FoundPoint& point : found.points) {
    if (shown.size() == top) break;
    if (!is_front || point.on_front) shown.push_back(&point);
  }
  const bool has_formula = std::any_of(shown.begin(), shown.end(), [](const FoundPoint* point) {
    return point->formula.has_value();
  });
  size_t widest = 13;
  for (const FoundPoint* point : shown)
    widest = std::max(widest, VisibleText(search.space.NameOf(point->point)).size());
  std::string text = fmt::format("\n  {:>3}  {:<{}}", "#", "configuration", widest);
  if (has_formula) text += fmt::format("  {:>11}", "formula");
  for (const Objective& objective : search.objectives)
    text += fmt::format("  {:>12}", objective.name);
  if (shown.front()->simulated)
    text += fmt::format("  {:>10}  {:>5}  {}", "memory", "MFU", "beside the first");
  text += "\n";
  for (size_t i = 0; i < shown.size(); ++i) {
    const FoundPoint& point = *shown[i];
    text += fmt::format("  {:>3}  {:<{}}", i + 1, VisibleText(search.space.NameOf(point.point)),
                        widest);
    if (has_formula)
      text += fmt::format("  {:>11}",
                          point.formula ? FormulaText(search, *point.formula) : std::string("-"));
    if (point.simulated) {
      const SimulatedPoint& simulated = *point.simulated;
      for (size_t k = 0; k < search.objectives.size(); ++k)
        text += fmt::format("  {:>12}", Print(search.objectives[k], simulated.values[k]));
      text += fmt::format("  {:>10}  {:>5.1f}", Print(simulated.memory),
                          100 * simulated.model_flops_utilization);
      if (i > 0) text += "  " + WhyNot(*shown.front()->simulated, simulated);
    } else if (search.decide != Decision::kFormula) {
      text += "  not simulated";
    }
    text += "\n";
  }
  return is_front ? "\nThe Pareto front: nothing else is better in both.\n" + text.substr(1) : text;
}

std::string ExcludedText(const FoundPoints& found) {
  if (found.excluded.empty()) return "";
  std::vector<const std::pair<const std::string, ExcludedPoints>*> reasons;
  for (const auto& reason : found.excluded) reasons.push_back(&reason);
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto* a, const auto* b) {
    return a->second.points > b->second.points;
  });
  std::string text = "\nImpossible, by reason\n";
  constexpr size_t kMostReasons = 8;
  constexpr size_t kLongest = 110;
  for (size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i) {
    std::string words = VisibleText(reasons[i]->first);
    if (words.size() > kLongest) words = words.substr(0, kLongest) + "...";
    text += fmt::format("  {:>9}  {}\n", Counted(static_cast<double>(reasons[i]->second.points)),
                        words);
  }
  if (reasons.size() > kMostReasons)
    text += fmt::format("             and {} more reasons (--format json has all)\n",
                        reasons.size() - kMostReasons);
  return text;
}

std::string ExplainText(const Search& search, const FoundPoints& found) {
  if (found.points.size() < 2 || !found.points[1].simulated)
    return "\n"
           "There is no second configuration to compare with the first.\n";
  const SimulatedPoint& first = *found.points[0].simulated;
  const SimulatedPoint& second = *found.points[1].simulated;
  std::string text = fmt::format(
      "\nThe first ({}) against the second ({}), where the second takes longer\n"
      "  {:<24} {:>11} {:>11} {:>11}\n",
      VisibleText(search.space.NameOf(found.points[0].point)),
      VisibleText(search.space.NameOf(found.points[1].point)), "", "first", "second", "more");
  std::vector<std::string> names;
  for (const SimulatedPoint* point : {&first, &second})
    for (const auto& [name, seconds] : PartsOf(*point))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return PartOf(second, a) - PartOf(first, a) > PartOf(second, b) - PartOf(first, b);
  });
  for (const std::string& name : names) {
    const Seconds one = PartOf(first, name);
    const Seconds other = PartOf(second, name);
    if (one == Seconds(0) && other == Seconds(0)) continue;
    text += fmt::format("  {:<24} {:>11} {:>11} {:>11}\n", name, Print(one), Print(other),
                        Signed(other - one));
  }
  text += fmt::format("  {:<24} {:>11} {:>11} {:>11}\n", "step", Print(first.step),
                      Print(second.step), Signed(second.step - first.step));
  for (const SimulatedPoint* point : {&first, &second})
    if (!point->busiest_link.empty())
      text += fmt::format("  busiest link of the {}: {}, {:.0f} % of its time\n",
                          point == &first ? "first" : "second", point->busiest_link,
                          100 * point->busiest_share);
  return text;
}

std::string QualityText(const Search& search, const SearchQuality& quality) {
  return fmt::format(
      "\nHow good the formula {} is, by {} simulated steps\n"
      "  average precision at 5       {:.2f}   efficient: within 10 % of the best, or of the best "
      "five\n"
      "  Kendall's tau                {:.2f}\n"
      "  regret of its first choice   {:.1f} %\n"
      "  its rank of the best         {}\n",
      Name(search.formula), quality.points, quality.average_precision_at_5, quality.kendall_tau,
      100 * quality.regret, quality.rank_of_best);
}

ordered_json ToJson(const Search& search, const FoundPoint& point) {
  ordered_json set = ordered_json::object();
  for (const auto& [path, value] : search.space.ChangesOf(point.point)) set[path] = value;
  ordered_json json = {{"name", search.space.NameOf(point.point)}, {"set", std::move(set)}};
  if (point.formula) json["formula"] = *point.formula;
  if (!point.simulated) return json;
  const SimulatedPoint& simulated = *point.simulated;
  ordered_json values = ordered_json::object();
  for (size_t i = 0; i < search.objectives.size(); ++i)
    values[search.objectives[i].name] = simulated.values[i];
  json["objectives"] = std::move(values);
  json["step_seconds"] = simulated.step.value();
  json["compute_seconds"] = simulated.compute.value();
  json["idle_seconds"] = simulated.idle.value();
  ordered_json exposed = ordered_json::object();
  for (const auto& [axis, seconds] : simulated.exposed) exposed[axis] = seconds.value();
  json["exposed_seconds"] = std::move(exposed);
  json["model_flops_utilization"] = simulated.model_flops_utilization;
  json["memory_bytes"] = simulated.memory.value();
  if (simulated.run) json["run"] = ToJson(*simulated.run);
  if (search.objectives.size() > 1) json["on_front"] = point.on_front;
  return json;
}

}  // namespace

std::string WhyNot(const SimulatedPoint& best, const SimulatedPoint& point) {
  std::string most;
  Seconds longest;
  for (const auto& [name, seconds] : PartsOf(point)) {
    const Seconds more = seconds - PartOf(best, name);
    if (more <= longest) continue;
    longest = more;
    most = name;
  }
  return most.empty() ? "" : fmt::format("{} {}", most, Signed(longest));
}

std::string ToText(const Search& search, const FoundPoints& found, const SearchWords& words) {
  if (found.points.empty())  // of a shard
    return Headline(search, found) + FormulaSentence(search, found) + ExcludedText(found);
  std::string text = BestSentence(search, found) + Headline(search, found) +
                     FormulaSentence(search, found) + GroupsText(search, found) +
                     RunsText(search, found) + Rows(search, found, words.top);
  if (words.explain) text += ExplainText(search, found);
  if (words.quality) text += QualityText(search, ComputeQuality(search, found));
  return text + ExcludedText(found);
}

ordered_json ToJson(const Search& search, const FoundPoints& found, const SearchWords& words) {
  ordered_json json = {{"schema", "rehearse.search.v1"},     {"space", search.space.Size()},
                       {"looked_at", found.looked_at},       {"simulated", found.simulated},
                       {"method", Name(search.walk.method)}, {"formula", Name(search.formula)}};
  if (!found.shard.IsWhole())
    json["shard"] = fmt::format("{}/{}", found.shard.number, found.shard.of);
  ordered_json objectives = ordered_json::array();
  for (const Objective& objective : search.objectives) objectives.push_back(objective.name);
  json["objectives"] = std::move(objectives);
  if (found.worst_kept) json["worst_formula_kept"] = *found.worst_kept;
  if (found.best_left) json["best_formula_left_out"] = *found.best_left;
  ordered_json excluded = ordered_json::array();
  for (const auto& [reason, points] : found.excluded)
    excluded.push_back(
        {{"reason", reason}, {"points", points.points}, {"example", points.example}});
  json["impossible"] = std::move(excluded);
  if (!found.groups.empty())
    json["per"] = {{"path", *search.per}, {"choices", GroupsJson(search, found)}};
  if (words.quality) {
    const SearchQuality quality = ComputeQuality(search, found);
    json["quality"] = {{"points", quality.points},
                       {"average_precision_at_5", quality.average_precision_at_5},
                       {"kendall_tau", quality.kendall_tau},
                       {"regret", quality.regret},
                       {"rank_of_best", quality.rank_of_best}};
  }
  ordered_json points = ordered_json::array();
  for (const FoundPoint& point : found.points) points.push_back(ToJson(search, point));
  json["points"] = std::move(points);
  return json;
}

DataTable TableOf(const Search& search, const FoundPoints& found) {
  std::vector<std::string> paths;
  for (const SpaceAxis& axis : search.space.axes)
    for (const SpaceChoice& choice : axis.choices)
      for (const auto& [path, value] : choice.changes)
        if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  std::vector<std::vector<ordered_json>> values(paths.size());
  for (const FoundPoint& point : found.points) {
    for (std::vector<ordered_json>& column : values) column.emplace_back(nullptr);
    for (const auto& [path, value] : search.space.ChangesOf(point.point)) {
      const auto at = std::find(paths.begin(), paths.end(), path) - paths.begin();
      values[static_cast<size_t>(at)].back() = ordered_json(value);
    }
  }
  std::vector<DataColumn> columns = {{"configuration", CellKind::kText}};
  std::vector<CellKind> kinds;
  for (size_t i = 0; i < paths.size(); ++i) {
    kinds.push_back(KindOfAll(values[i]));
    columns.push_back({paths[i], kinds.back()});
  }
  columns.push_back({"status", CellKind::kText});
  columns.push_back({"formula", CellKind::kNumber});
  for (const Objective& objective : search.objectives)
    columns.push_back({objective.name, CellKind::kNumber});
  for (const char* name : {"step_seconds", "compute_seconds", "exposed_seconds", "idle_seconds",
                           "model_flops_utilization", "memory_bytes"})
    columns.push_back({name, CellKind::kNumber});
  const bool has_runs = search.tokens_of_run > 0;
  const bool has_costs = has_runs && !search.currency_of_costs.empty();
  if (has_runs)
    for (const char* name : {"run_seconds", "run_effective"})
      columns.push_back({name, CellKind::kNumber});
  if (has_costs)
    for (const char* name : {"run_money", "run_kilowatt_hours"})
      columns.push_back({name, CellKind::kNumber});
  if (search.objectives.size() > 1) columns.push_back({"on_front", CellKind::kTruth});

  DataTable table(columns);
  for (size_t row = 0; row < found.points.size(); ++row) {
    const FoundPoint& point = found.points[row];
    std::vector<DataCell> cells = {search.space.NameOf(point.point)};
    for (size_t i = 0; i < paths.size(); ++i) cells.push_back(CellOf(values[i][row], kinds[i]));
    cells.emplace_back(point.simulated ? "simulated" : "formula");
    cells.emplace_back(point.formula);
    if (point.simulated) {
      const SimulatedPoint& simulated = *point.simulated;
      for (const double value : simulated.values) cells.emplace_back(value);
      for (const double value :
           {simulated.step.value(), simulated.compute.value(), ExposedOf(simulated).value(),
            simulated.idle.value(), simulated.model_flops_utilization, simulated.memory.value()})
        cells.emplace_back(value);
      const auto median = [&](const std::optional<RunSpread>& spread) {
        cells.push_back(spread ? DataCell(spread->median) : DataCell());
      };
      const PointRun run = simulated.run.value_or(PointRun());
      if (has_runs) median(run.seconds);
      if (has_runs) median(run.effective);
      if (has_costs) median(run.money);
      if (has_costs) median(run.kilowatt_hours);
      if (search.objectives.size() > 1) cells.emplace_back(point.on_front);
    }
    cells.resize(columns.size());
    table.Add(std::move(cells));
  }
  return table;
}

}  // namespace rehearse
