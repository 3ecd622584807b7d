#include "scenarios/searching/search_machines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/validated_steps.h"
#include "scenarios/searching/point_rates.h"
#include "scenarios/searching/search_groups.h"
#include "scenarios/searching/search_runs.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kPercent = 100;

// How a number follows the length of the step.
enum class Follows : uint8_t { kNot, kStep, kReciprocal, kStepOfRun };

struct Measure {
  const char* key;
  std::string title;
  std::string unit;
  bool more_is_better = false;
  Follows follows = Follows::kNot;
  std::function<std::optional<double>(const SimulatedPoint&)> of;
};

Seconds AllExposed(const SimulatedPoint& point) {
  Seconds sum;
  for (const auto& [axis, seconds] : point.exposed) sum += seconds;
  return sum;
}

std::string CurrencyOf(const Search& search) {
  if (!search.currency_of_costs.empty()) return search.currency_of_costs;
  return PointRates(search.space, search.rates).currency();
}

std::string TokensOf(const FoundPoints& found) {
  for (const FoundPoint& point : found.points)
    if (point.simulated && !point.simulated->token_name.empty()) return point.simulated->token_name;
  return "tokens";
}

bool HasCosts(const Measure& measure) {
  return measure.key == std::string_view("money") || measure.key == std::string_view("energy");
}

bool IsOfRun(const Measure& measure) {
  const std::string_view key = measure.key;
  return key.starts_with("run-") || key == "goodput";
}

// Those that at least one point has; where nothing was simulated, those that all have.
std::vector<Measure> MeasuresOf(const Search& search, const FoundPoints& found) {
  const std::string tokens = TokensOf(found);
  std::vector<Measure> all = {
      {"step", "step", "s", false, Follows::kStep,
       [](const SimulatedPoint& point) { return std::optional(point.step.value()); }},
      {"tokens", "speed", tokens + "/s", true, Follows::kReciprocal,
       [](const SimulatedPoint& point) -> std::optional<double> {
         if (!(point.tokens_per_second > 0)) return std::nullopt;
         return point.tokens_per_second;
       }},
      {"memory", "memory", "GiB of the fullest GPU", false, Follows::kNot,
       [](const SimulatedPoint& point) { return std::optional(point.memory.value() / kGibibyte); }},
      {"exposed", "exposed communication", "% of the step", false, Follows::kNot,
       [](const SimulatedPoint& point) {
         return std::optional(kPercent * (AllExposed(point) / point.step));
       }},
      {"mfu", "MFU", "%", true, Follows::kReciprocal,
       [](const SimulatedPoint& point) {
         return std::optional(kPercent * point.model_flops_utilization);
       }},
      {"money", "cost", fmt::format("{} a million {}", CurrencyOf(search), tokens), false,
       Follows::kStep, [](const SimulatedPoint& point) { return point.money; }},
      {"energy", "energy", "Wh a million " + tokens, false, Follows::kStep,
       [](const SimulatedPoint& point) -> std::optional<double> {
         constexpr double kKilo = 1000;
         if (!point.energy) return std::nullopt;
         return kKilo * *point.energy;
       }},
      {"run-time", "run", "days", false, Follows::kStepOfRun,
       [](const SimulatedPoint& point) -> std::optional<double> {
         constexpr double kDay = 86400;
         if (!point.run) return std::nullopt;
         return point.run->seconds.median / kDay;
       }},
      {"goodput", "goodput", "%", true, Follows::kNot,
       [](const SimulatedPoint& point) -> std::optional<double> {
         if (!point.run) return std::nullopt;
         return kPercent * point.run->effective.median;
       }},
      {"run-money", "cost of the run", CurrencyOf(search), false, Follows::kStepOfRun,
       [](const SimulatedPoint& point) -> std::optional<double> {
         if (!point.run || !point.run->money) return std::nullopt;
         return point.run->money->median;
       }},
      {"run-energy", "energy of the run", "MWh", false, Follows::kStepOfRun,
       [](const SimulatedPoint& point) -> std::optional<double> {
         constexpr double kKilo = 1000;
         if (!point.run || !point.run->kilowatt_hours) return std::nullopt;
         return point.run->kilowatt_hours->median / kKilo;
       }}};
  std::vector<Measure> known;
  for (Measure& measure : all)
    if (found.simulated == 0
            ? !HasCosts(measure) && !IsOfRun(measure)
            : std::any_of(found.points.begin(), found.points.end(), [&](const FoundPoint& point) {
                return point.simulated && measure.of(*point.simulated);
              }))
      known.push_back(std::move(measure));
  return known;
}

// Weeks are counted with one step, which the ends of the step's range stand beside.
RangedNumber RangeOfRun(const SimulatedPoint& point) {
  RangedNumber range = RangeOf(point);
  if (!point.run || !(point.run->step > Seconds(0))) return range;
  const double simulated = point.step / point.run->step;
  range.low = std::min(1.0, range.low * simulated);
  range.high = std::max(1.0, range.high * simulated);
  return range;
}

std::optional<RangedNumber> Ranged(const Measure& measure, const SimulatedPoint& point) {
  const std::optional<double> value = measure.of(point);
  if (!value) return std::nullopt;
  if (measure.follows == Follows::kNot) return RangedNumber{*value, *value, *value};
  const RangedNumber step =
      measure.follows == Follows::kStepOfRun ? RangeOfRun(point) : RangeOf(point);
  const RangedNumber factor = measure.follows == Follows::kReciprocal ? step.Inverse() : step;
  return RangedNumber{*value, *value * factor.low, *value * factor.high};
}

struct Machine {
  std::string name;
  std::optional<size_t> best;
  const FoundGroup* group = nullptr;  // with "per"
  const SimulatedPoint* simulated = nullptr;
};

// "dgx-h100:nodes=4" of "cluster dgx-h100:nodes=4", as the axis calls it.
std::string NameOfMachine(const std::string& choice, const std::string& axis) {
  return choice.starts_with(axis + " ") ? choice.substr(axis.size() + 1) : choice;
}

std::string NameOfCluster(const json& scenario) {
  if (!scenario.contains("cluster")) return "the cluster";
  const json& cluster = scenario["cluster"];
  if (cluster.is_string()) return cluster.get<std::string>();
  for (const char* key : {"preset", "name"})
    if (cluster.is_object() && cluster.contains(key) && cluster[key].is_string())
      return cluster[key].get<std::string>();
  return "the cluster";
}

std::vector<Machine> MachinesOf(const Search& search, const FoundPoints& found) {
  std::vector<Machine> machines;
  for (const FoundGroup& group : found.groups)
    machines.push_back(
        {NameOfMachine(group.name, search.space.axes[*search.per_axis].name), group.best, &group});
  if (found.groups.empty()) {
    const std::optional<size_t> best =
        found.points.empty() ? std::nullopt : std::optional<size_t>(0);
    const JsonDocument scenario =
        best ? ScenarioOf(search, found.points.front().point) : search.scenario;
    machines.push_back({NameOfCluster(scenario.value()), best});
  }
  for (Machine& machine : machines)
    if (machine.best && found.points[*machine.best].simulated)
      machine.simulated = &*found.points[*machine.best].simulated;
  return machines;
}

// Without the axis of the machines.
std::string Configuration(const Search& search, SpacePoint point) {
  SearchSpace space = search.space;
  if (search.per_axis && space.axes.size() > 1) {
    const auto axis = static_cast<ptrdiff_t>(*search.per_axis);
    space.axes.erase(space.axes.begin() + axis);
    point.erase(point.begin() + axis);
  }
  return space.NameOf(point);
}

// "compute 71 %, exposed tensor 12 %": the parts that most of the step goes to.
std::string WhatBinds(const SimulatedPoint& point) {
  std::vector<std::pair<std::string, Seconds>> parts = PartsOf(point);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  constexpr size_t kMost = 3;
  constexpr double kVisible = 0.5;
  for (size_t i = 0; i < std::min(parts.size(), kMost); ++i) {
    const double share = kPercent * (parts[i].second / point.step);
    if (share >= kVisible)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", parts[i].first, share);
  }
  if (!point.waits_for.empty()) text += "; it waits for " + point.waits_for;
  return text;
}

struct WorstDevice {
  std::string name;
  double error = 0;  // the mean over its published steps
};

// Of the GPUs of which steps are published.
WorstDevice PredictedWorst() {
  std::map<std::string, std::pair<double, double>> sums;  // of errors and of steps, by device
  for (const ValidatedSteps& steps : ValidatedTable()) {
    sums[steps.device].first += steps.rows * steps.mean_error;
    sums[steps.device].second += steps.rows;
  }
  WorstDevice worst;
  for (const auto& [device, sum] : sums)
    if (sum.first / sum.second > worst.error) worst = {device, sum.first / sum.second};
  return worst;
}

std::string TrustOfMachine(const SimulatedPoint& point) {
  if (!point.trust) return "";
  const Trust& trust = *point.trust;
  if (trust.rows == 0) {
    const WorstDevice worst = PredictedWorst();
    return fmt::format("no published step is like it: its range is for {:.1f} %, as {}, the worst",
                       kPercent * worst.error, worst.name);
  }
  return fmt::format("{} published step{} like it ({}): {:.1f} % off in the mean", trust.rows,
                     trust.rows == 1 ? "" : "s", trust.like, kPercent * trust.mean_error);
}

// ---- The sentence -------------------------------------------------------------------------------

// Three digits.
std::string Short(double value) {
  constexpr double kGroup = 1000;
  if (value < kGroup) return fmt::format("{:.3g}", value);
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return Grouped(static_cast<uint64_t>(std::llround(std::round(value / unit) * unit)));
}

std::string WithRange(const RangedNumber& number) {
  const std::string low = Short(number.low);
  const std::string high = Short(number.high);
  return Short(number.value) + (low == high ? "" : fmt::format(" ({} to {})", low, high));
}

struct Ranking {
  const Machine* first = nullptr;
  const Machine* second = nullptr;  // nullptr if there is no other with the number
  RangedNumber best;
  RangedNumber factor;  // by which the second is worse
};

std::optional<Ranking> RankBy(const Measure& measure, const std::vector<Machine>& machines) {
  std::vector<std::pair<RangedNumber, const Machine*>> known;
  for (const Machine& machine : machines)
    if (machine.simulated != nullptr)
      if (const auto number = Ranged(measure, *machine.simulated))
        known.emplace_back(*number, &machine);
  if (known.empty()) return std::nullopt;
  std::stable_sort(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return measure.more_is_better ? a.first.value > b.first.value : a.first.value < b.first.value;
  });
  Ranking ranking;
  ranking.first = known.front().second;
  ranking.best = known.front().first;
  if (known.size() < 2) return ranking;
  ranking.second = known[1].second;
  ranking.factor = measure.more_is_better ? known[0].first.Over(known[1].first)
                                          : known[1].first.Over(known[0].first);
  return ranking;
}

// Whether the ranges say that the first is better.
std::string Doubt(const Ranking& ranking) {
  return ranking.factor.low < 1 ? ", which their ranges do not tell apart" : "";
}

const Measure* Find(const std::vector<Measure>& measures, const std::string& key) {
  for (const Measure& measure : measures)
    if (measure.key == key) return &measure;
  return nullptr;
}

std::string OneMachine(const Machine& machine, const std::vector<Measure>& measures) {
  std::string text = fmt::format("The best configuration on {} takes {} s a step", machine.name,
                                 WithRange(*Ranged(measures.front(), *machine.simulated)));
  const bool has_run_costs = Find(measures, "run-money") != nullptr;
  struct Part {
    const char* key;
    const char* words;
  };
  for (const auto& [key, words] :
       {Part{"tokens", ""}, Part{"run-time", "its run takes "},
        Part{has_run_costs ? "run-money" : "money", has_run_costs ? "the run costs " : ""}})
    if (const Measure* measure = Find(measures, key))
      if (const auto number = Ranged(*measure, *machine.simulated))
        text += fmt::format(", {}{} {}", words, WithRange(*number), measure->unit);
  return text + ".";
}

std::string SentenceOf(const std::vector<Machine>& machines, const std::vector<Measure>& measures) {
  std::vector<const Machine*> simulated;
  for (const Machine& machine : machines)
    if (machine.simulated != nullptr) simulated.push_back(&machine);
  if (simulated.empty()) return "Nothing was simulated: there are only numbers of the formula.";
  if (simulated.size() == 1) return OneMachine(*simulated.front(), measures);
  const Measure* tokens = Find(measures, "tokens");
  const Measure& speed = tokens != nullptr ? *tokens : measures.front();
  const Ranking fastest = *RankBy(speed, machines);
  std::string text = fmt::format("{} is the fastest: {} {}, {} times as fast as {}{}",
                                 fastest.first->name, WithRange(fastest.best), speed.unit,
                                 WithRange(fastest.factor), fastest.second->name, Doubt(fastest));
  struct Praise {
    const char* key;
    const char* word;
    const char* also;
  };
  constexpr Praise kPraises[] = {
      {"run-time", "ends its run first", "also ends its run first"},
      {"run-money", "has the cheapest run", "also has the cheapest run"},
      {"money", "is the cheapest", "is also the cheapest"},
      {"energy", "takes the least energy", "also takes the least energy"}};
  const Machine* subject = fastest.first;
  for (const auto& [key, word, also] : kPraises) {
    const Measure* measure = Find(measures, key);
    // Of a run and of a million tokens, a sentence says what the run costs.
    const bool is_said = std::string_view(key) == "money" && Find(measures, "run-money") != nullptr;
    if (measure == nullptr || is_said) continue;
    const auto ranking = RankBy(*measure, machines);
    if (!ranking || ranking->second == nullptr) continue;
    text += fmt::format("; {} {}: {} {}, {} needs {} times as much{}",
                        ranking->first == subject ? "it" : ranking->first->name,
                        ranking->first == fastest.first ? also : word, WithRange(ranking->best),
                        measure->unit, ranking->second->name, WithRange(ranking->factor),
                        Doubt(*ranking));
    subject = ranking->first;
  }
  return text + ".";
}

// ---- What is compared ---------------------------------------------------------------------------

// What `rehearse init` calls a scenario ends with one of the machines.
std::string TitleOf(const Search& search) {
  const std::string end = " on " + NameOfCluster(search.scenario.value());
  if (search.per_axis && search.name.size() > end.size() && search.name.ends_with(end))
    return search.name.substr(0, search.name.size() - end.size());
  return search.name;
}

std::string NameOfModel(const json& model) {
  if (model.is_string()) return model.get<std::string>();
  if (!model.is_object()) return "";
  if (model.contains("preset") && model["preset"].is_string())
    return model["preset"].get<std::string>();
  if (model.contains("file") && model["file"].is_string())
    return std::filesystem::path(model["file"].get<std::string>()).stem().string();
  if (model.contains("layers") && model.contains("hidden"))
    return fmt::format("a model of {} layers of {}", model["layers"].dump(),
                       model["hidden"].dump());
  return "";
}

bool IsChanged(const Search& search, const std::string& wanted) {
  for (const SpaceAxis& axis : search.space.axes)
    for (const SpaceChoice& choice : axis.choices)
      for (const auto& [path, value] : choice.changes)
        if (path == wanted) return true;
  return false;
}

std::vector<std::string> FactsOf(const Search& search, const FoundPoints& found,
                                 const std::vector<Machine>& machines) {
  std::vector<std::string> facts;
  const json& scenario = search.scenario.value();
  if (const std::string model = NameOfModel(scenario.value("model", json())); !model.empty())
    facts.push_back(model);
  uint32_t fewest = 0;
  uint32_t most = 0;
  for (const Machine& machine : machines) {
    if (machine.simulated == nullptr) continue;
    const uint32_t devices = machine.simulated->devices;
    fewest = fewest == 0 ? devices : std::min(fewest, devices);
    most = std::max(most, devices);
  }
  if (most > 0)
    facts.push_back(fewest == most ? Grouped(most) + (most == 1 ? " GPU" : " GPUs")
                                   : fmt::format("{} to {} GPUs", Grouped(fewest), Grouped(most)));
  const json training = scenario.value("training", json::object());
  if (training.is_object() && training.contains("batch") && !IsChanged(search, "training.batch")) {
    std::string batch = "batch " + training["batch"].dump();
    if (training.contains("sequence") && !IsChanged(search, "training.sequence"))
      batch += " of " + training["sequence"].dump() + " " + TokensOf(found);
    facts.push_back(batch);
  }
  facts.push_back(fmt::format("the best in {} of {} configurations, {} simulated",
                              search.objectives.front().name, Grouped(found.looked_at),
                              Grouped(found.simulated)));
  return facts;
}

double Rounded(double value) {
  return std::stod(fmt::format("{:.6g}", value));  // a page shows fewer digits
}

ordered_json PointsJson(const Search& search, const FoundPoints& found,
                        const std::vector<Measure>& measures) {
  ordered_json machine = ordered_json::array();
  ordered_json name = ordered_json::array();
  ordered_json low = ordered_json::array();
  ordered_json high = ordered_json::array();
  ordered_json run_low = ordered_json::array();
  ordered_json run_high = ordered_json::array();
  ordered_json values = ordered_json::object();
  for (const FoundPoint& point : found.points) {
    if (!point.simulated) break;
    if (point.simulated->run) {
      const RangedNumber run = RangeOfRun(*point.simulated);
      run_low.push_back(Rounded(run.low));
      run_high.push_back(Rounded(run.high));
    }
    machine.push_back(search.per_axis ? point.point[*search.per_axis] : 0);
    name.push_back(Configuration(search, point.point));
    const RangedNumber range = RangeOf(*point.simulated);
    low.push_back(Rounded(range.low));
    high.push_back(Rounded(range.high));
    for (const Measure& measure : measures) {
      const auto value = measure.of(*point.simulated);
      values[measure.key].push_back(value ? ordered_json(Rounded(*value)) : ordered_json());
    }
  }
  ordered_json points = {{"machine", std::move(machine)},
                         {"name", std::move(name)},
                         {"low", std::move(low)},
                         {"high", std::move(high)},
                         {"values", std::move(values)}};
  if (!run_low.empty()) {  // a "run" is of all points or of none
    points["run_low"] = std::move(run_low);
    points["run_high"] = std::move(run_high);
  }
  return points;
}

const char* NameOf(Follows follows) {
  switch (follows) {
    case Follows::kNot:
      return "not";
    case Follows::kStep:
      return "step";
    case Follows::kReciprocal:
      return "reciprocal";
    case Follows::kStepOfRun:
      return "run";
  }
  return "";
}

}  // namespace

RangedNumber RangedNumber::Over(const RangedNumber& other) const {
  return {value / other.value, low / other.high, high / other.low};
}
RangedNumber RangedNumber::Inverse() const { return {1 / value, 1 / high, 1 / low}; }

RangedNumber RangeOf(const SimulatedPoint& point) {
  RangedNumber range{1, 1, 1};
  if (point.typical && point.step > Seconds(0)) {
    range.low = std::min(1.0, point.typical->low / point.step);
    range.high = std::max(1.0, point.typical->high / point.step);
  }
  if (point.trust) {
    constexpr double kMostError = 0.9;
    const double error = std::min(
        point.trust->rows > 0 ? point.trust->mean_error : PredictedWorst().error, kMostError);
    range.low /= 1 + error;
    range.high /= 1 - error;
  }
  return range;
}

std::string MachinesSentence(const Search& search, const FoundPoints& found) {
  return SentenceOf(MachinesOf(search, found), MeasuresOf(search, found));
}

ordered_json MachinesJson(const Search& search, const FoundPoints& found) {
  const std::vector<Machine> machines = MachinesOf(search, found);
  const std::vector<Measure> measures = MeasuresOf(search, found);
  ordered_json json = {{"title", TitleOf(search)},
                       {"facts", FactsOf(search, found, machines)},
                       {"sentence", SentenceOf(machines, measures)},
                       {"of", search.per ? *search.per : "cluster"}};
  json["measures"] = ordered_json::array();
  for (const Measure& measure : measures)
    json["measures"].push_back({{"key", measure.key},
                                {"title", measure.title},
                                {"unit", measure.unit},
                                {"more", measure.more_is_better},
                                {"follows", NameOf(measure.follows)}});
  json["objectives"] = ordered_json::array();
  for (const Objective& objective : search.objectives) json["objectives"].push_back(objective.name);
  json["machines"] = ordered_json::array();
  for (const Machine& machine : machines) {
    ordered_json one = {{"name", machine.name}};
    if (machine.best)
      one["configuration"] = Configuration(search, found.points[*machine.best].point);
    else if (machine.group != nullptr)
      one["why_none"] = WhyNone(*machine.group);
    if (machine.simulated != nullptr) {
      one["point"] = *machine.best;
      one["devices"] = machine.simulated->devices;
      one["binds"] = WhatBinds(*machine.simulated);
      one["capacity"] = machine.simulated->memory_capacity.value() / kGibibyte;
      one["trust"] = TrustOfMachine(*machine.simulated);
      if (machine.simulated->run)
        one["weeks"] = machine.group != nullptr ? GroupRunJson(found, *machine.group)
                                                : ToJson(*machine.simulated->run);
    }
    json["machines"].push_back(std::move(one));
  }
  json["points"] = PointsJson(search, found, measures);
  return json;
}

}  // namespace rehearse
