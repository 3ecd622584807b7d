#include "scenarios/searching/search_runs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/long_times.h"
#include "scenarios/searching/search_groups.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

constexpr double kDay = 86400;
constexpr double kHundredth = 0.01;
constexpr double kMegawattHour = 1000;  // in kWh

const PointRun* RunAt(const FoundPoints& found, std::optional<size_t> point) {
  if (!point || !found.points[*point].simulated) return nullptr;
  const std::optional<PointRun>& run = found.points[*point].simulated->run;
  return run ? &*run : nullptr;
}

const PointRun* FirstRun(const FoundPoints& found) {
  for (const FoundGroup& group : found.groups)
    if (const PointRun* run = RunAt(found, group.best)) return run;
  return nullptr;
}

// What a number is called, and how it is printed.
struct RunNumber {
  const char* key;
  std::string title;
  double unit = 1;  // what is printed is the number over it
  RunSpread (*of)(const PointRun& run) = nullptr;
};

std::vector<RunNumber> NumbersOf(const PointRun& run, const std::string& currency) {
  std::vector<RunNumber> numbers = {
      {"seconds", "days", kDay, [](const PointRun& one) { return one.seconds; }},
      {"effective", "goodput, %", kHundredth, [](const PointRun& one) { return one.effective; }}};
  if (!run.money) return numbers;
  numbers.push_back(
      {"money", currency, 1, [](const PointRun& one) { return one.money.value_or(RunSpread()); }});
  numbers.push_back({"kilowatt_hours", "MWh", kMegawattHour,
                     [](const PointRun& one) { return one.kilowatt_hours.value_or(RunSpread()); }});
  return numbers;
}

// Four digits, or all of them before the point.
std::string Digits(double number) {
  constexpr double kMany = 1000;
  return number >= kMany ? Grouped(static_cast<uint64_t>(std::llround(number)))
                         : fmt::format("{:.4g}", number);
}

std::string Printed(const RunNumber& number, const PointRun& run) {
  const RunSpread spread = number.of(run);
  return fmt::format("{} ({} to {})", Digits(spread.median / number.unit),
                     Digits(spread.low / number.unit), Digits(spread.high / number.unit));
}

std::optional<double> RatioOf(const RunNumber& number, const PointRun& run, const PointRun& first) {
  const double one = number.of(first).median;
  if (!(one > 0)) return std::nullopt;
  return number.of(run).median / one;
}

std::string SeedsText(const PointRun& run) {
  return fmt::format("{} {}; in brackets 10 % to 90 % of {} runs", PrintCount(run.tokens),
                     run.token_name, run.seeds);
}

std::string RunOfBest(const Search& search, const PointRun& run) {
  std::string text = "\nThe run of the best   " + SeedsText(run) + "\n";
  for (const RunNumber& number : NumbersOf(run, search.currency_of_costs))
    text += fmt::format("  {:<12}{}\n", number.title, Printed(number, run));
  return text;
}

}  // namespace

std::string RunsText(const Search& search, const FoundPoints& found) {
  if (found.groups.empty()) {
    const PointRun* run =
        RunAt(found, found.points.empty() ? std::nullopt : std::optional<size_t>(0));
    return run != nullptr ? RunOfBest(search, *run) : "";
  }
  const PointRun* first = FirstRun(found);
  if (first == nullptr) return "";
  TextColumns columns = {{search.space.axes[*search.per_axis].name}};
  const std::vector<RunNumber> numbers = NumbersOf(*first, search.currency_of_costs);
  for (const RunNumber& number : numbers) {
    columns.push_back({number.title});
    columns.push_back({"ratio"});
  }
  for (const FoundGroup& group : found.groups) {
    const PointRun* run = RunAt(found, group.best);
    columns[0].cells.push_back(VisibleText(group.name));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto ratio = run != nullptr ? RatioOf(numbers[i], *run, *first) : std::nullopt;
      columns[2 * i + 1].cells.push_back(run != nullptr ? Printed(numbers[i], *run) : "-");
      columns[2 * i + 2].cells.push_back(ratio ? fmt::format("{:.3g}", *ratio) : "-");
    }
  }
  return fmt::format("\nThe run of each, {}; \"ratio\" is beside the first one's\n",
                     SeedsText(*first)) +
         Aligned(columns, found.groups.size());
}

ordered_json GroupRunJson(const FoundPoints& found, const FoundGroup& group) {
  const PointRun* run = RunAt(found, group.best);
  if (run == nullptr) return nullptr;
  ordered_json json = ToJson(*run);
  ordered_json ratios = ordered_json::object();
  const PointRun* first = FirstRun(found);
  for (const RunNumber& number : NumbersOf(*run, ""))
    if (const auto ratio = RatioOf(number, *run, *first)) ratios[number.key] = *ratio;
  json["ratios"] = std::move(ratios);
  return json;
}

}  // namespace rehearse
