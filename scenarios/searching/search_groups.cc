#include "scenarios/searching/search_groups.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/search_runs.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

const SimulatedPoint* BestOf(const FoundPoints& found, const FoundGroup& group) {
  if (!group.best || !found.points[*group.best].simulated) return nullptr;
  return &*found.points[*group.best].simulated;
}

// The first objective beside that of the first choice with a simulated point.
std::optional<double> RatioOf(const FoundPoints& found, const SimulatedPoint& point) {
  for (const FoundGroup& group : found.groups) {
    const SimulatedPoint* first = BestOf(found, group);
    if (first == nullptr) continue;
    if (first->values.front() == 0) return std::nullopt;
    return point.values.front() / first->values.front();
  }
  return std::nullopt;
}

// "compute 71 %, exposed tensor 12 %".
std::string BindingText(const SimulatedPoint& point) {
  std::vector<std::pair<std::string, Seconds>> parts = PartsOf(point);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(parts.size(), 2); ++i) {
    const double share = 100 * (parts[i].second / point.step);
    if (share >= 0.5)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", parts[i].first, share);
  }
  return text;
}

}  // namespace

std::string Aligned(const TextColumns& columns, size_t rows, const std::vector<std::string>& last,
                    const std::string& last_title) {
  std::vector<size_t> widths;
  for (const TextColumn& column : columns) {
    widths.push_back(column.title.size());
    for (const std::string& cell : column.cells)
      widths.back() = std::max(widths.back(), cell.size());
  }
  std::string text;
  for (size_t row = 0; row <= rows; ++row) {
    text += " ";
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = row == 0 ? columns[i].title : columns[i].cells[row - 1];
      text += i == 0 ? fmt::format(" {:<{}}", cell, widths[i])
                     : fmt::format("  {:>{}}", cell, widths[i]);
    }
    if (!last.empty()) text += "  " + (row == 0 ? last_title : last[row - 1]);
    text += "\n";
  }
  return text;
}

std::string WhyNone(const FoundGroup& group) {
  const auto most = std::max_element(
      group.excluded.begin(), group.excluded.end(),
      [](const auto& a, const auto& b) { return a.second.points < b.second.points; });
  if (most == group.excluded.end()) return "no point was looked at";
  return fmt::format("none of {} points is possible; {} of them: {}", group.looked_at,
                     most->second.points, WithoutPlace(most->second.example));
}

std::vector<std::pair<std::string, Seconds>> PartsOf(const SimulatedPoint& point) {
  std::vector<std::pair<std::string, Seconds>> parts = {{"compute", point.compute}};
  for (const auto& [axis, seconds] : point.exposed) parts.emplace_back("exposed " + axis, seconds);
  parts.emplace_back("idle", point.idle);
  return parts;
}

std::string GroupsText(const Search& search, const FoundPoints& found) {
  if (found.groups.empty()) return "";
  const Objective& objective = search.objectives.front();
  const bool is_of_time = objective.kind == ObjectiveKind::kTime;
  TextColumns columns = {{search.space.axes[*search.per_axis].name}, {objective.name}, {"ratio"}};
  if (!is_of_time) columns.push_back({"step"});
  const size_t common = columns.size();
  for (const char* title : {"GPUs", "a second", "memory", "MFU"}) columns.push_back({title});
  bool has_money = false;
  bool has_energy = false;
  for (const FoundGroup& group : found.groups) {
    const SimulatedPoint* best = BestOf(found, group);
    has_money = has_money || (best != nullptr && best->money);
    has_energy = has_energy || (best != nullptr && best->energy);
  }
  if (has_money) columns.push_back({"a million cost"});
  if (has_energy) columns.push_back({"kWh a million"});
  std::vector<std::string> last;
  for (const FoundGroup& group : found.groups) {
    const SimulatedPoint* best = BestOf(found, group);
    for (TextColumn& column : columns) column.cells.emplace_back("-");
    columns[0].cells.back() = VisibleText(group.name);
    if (best == nullptr) {
      last.push_back(group.best
                         ? VisibleText(search.space.NameOf(found.points[*group.best].point)) +
                               " (not simulated)"
                         : WhyNone(group));
      continue;
    }
    columns[1].cells.back() = Print(objective, best->values.front());
    if (const auto ratio = RatioOf(found, *best))
      columns[2].cells.back() = fmt::format("{:.3g}", *ratio);
    if (!is_of_time) columns[3].cells.back() = Print(best->step);
    columns[common].cells.back() = fmt::format("{}", best->devices);
    columns[common + 1].cells.back() =
        fmt::format("{:.4g} {}", best->tokens_per_second, best->token_name);
    columns[common + 2].cells.back() = Print(best->memory);
    columns[common + 3].cells.back() = fmt::format("{:.1f}", 100 * best->model_flops_utilization);
    if (has_money && best->money)
      columns[common + 4].cells.back() = fmt::format("{:.4g}", *best->money);
    if (has_energy && best->energy)
      columns.back().cells.back() = fmt::format("{:.4g}", *best->energy);
    const std::string waits =
        best->waits_for.empty() ? "" : fmt::format("waits for {}; ", best->waits_for);
    last.push_back(fmt::format("{}; {}{}", BindingText(*best), waits,
                               VisibleText(search.space.NameOf(found.points[*group.best].point))));
  }
  return fmt::format("\nThe best of each; \"ratio\" is {} beside the first one's\n",
                     objective.name) +
         Aligned(columns, found.groups.size(), last,
                 "most of the step; what it waits for; configuration");
}

ordered_json GroupsJson(const Search& search, const FoundPoints& found) {
  ordered_json groups = ordered_json::array();
  for (const FoundGroup& group : found.groups) {
    ordered_json json = {
        {"name", group.name}, {"looked_at", group.looked_at}, {"simulated", group.simulated}};
    if (group.best) {
      json["best"] = *group.best;
      json["configuration"] = search.space.NameOf(found.points[*group.best].point);
    } else {
      json["why_none"] = WhyNone(group);
    }
    if (const SimulatedPoint* best = BestOf(found, group)) {
      if (const auto ratio = RatioOf(found, *best)) json["ratio"] = *ratio;
      json["devices"] = best->devices;
      json["tokens_per_second"] = best->tokens_per_second;
      if (best->money) json["money_per_million"] = *best->money;
      if (best->energy) json["kwh_per_million"] = *best->energy;
      if (!best->waits_for.empty()) json["waits_for"] = best->waits_for;
      if (best->run) json["run"] = GroupRunJson(found, group);
    }
    groups.push_back(std::move(json));
  }
  return groups;
}

}  // namespace rehearse
