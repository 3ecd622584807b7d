#include "scenarios/searching/objective.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/changes.h"
#include "scenarios/readers/long_times.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"
#include "topology/devices/board_power.h"

namespace rehearse {
namespace {

constexpr double kMillion = 1e6;
constexpr double kSecondsOfAnHour = 3600;

// "2.5USD/h" -> 2.5 and "USD"; nothing if it does not end like this.
std::optional<std::pair<double, std::string>> NumberBefore(std::string_view text,
                                                           std::string_view end) {
  double number = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || !(number > 0) || !(number < 1e12)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(stop - text.data()));
  if (unit.size() < end.size() || unit.substr(unit.size() - end.size()) != end) return std::nullopt;
  unit.remove_suffix(end.size());
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return std::pair(number, std::string(unit));
}

double GpuHoursOf(const Result& result) {
  return result.ranks * kMillion / result.tokens_per_second / kSecondsOfAnHour;
}

Objective ObjectiveOfNumber(const std::string& name, const JsonReader& reader) {
  std::vector<std::string> known = NumbersOfResults();
  std::vector<std::string> names(std::begin(kObjectiveNames), std::end(kObjectiveNames));
  const bool is_of_axis = name.rfind("by_axis.", 0) == 0;
  if (!is_of_axis && std::find(known.begin(), known.end(), name) == known.end()) {
    names.insert(names.end(), known.begin(), known.end());
    reader.Fail(
        fmt::format("found {}, expected time, tokens, gpu-hours, money, energy, memory, "
                    "run-time, run-money, run-energy or a number of the result{}",
                    QuotedJson(name), KnownNames(name, names)));
  }
  return {.kind = ObjectiveKind::kNumber,
          .name = name,
          .number = name,
          .unit = "",
          .more_is_better = MoreIsBetter(name)};
}

Objective ReadObjective(const JsonReader& reader) {
  const std::string name = reader.String();
  const auto found = std::find(std::begin(kObjectiveNames), std::end(kObjectiveNames), name);
  if (found == std::end(kObjectiveNames)) return ObjectiveOfNumber(name, reader);
  Objective objective;
  objective.kind = static_cast<ObjectiveKind>(found - std::begin(kObjectiveNames));
  objective.name = name;
  switch (objective.kind) {
    case ObjectiveKind::kTokens:
      objective.unit = "a second";
      objective.more_is_better = true;
      break;
    case ObjectiveKind::kGpuHours:
      objective.unit = "GPU hours a million";
      break;
    case ObjectiveKind::kMoney:
      objective.unit = "a million";
      break;
    case ObjectiveKind::kEnergy:
      objective.unit = "kWh a million";
      break;
    case ObjectiveKind::kMemory:
      objective.unit = "B";
      break;
    case ObjectiveKind::kRunEnergy:
      objective.unit = "kWh";
      break;
    case ObjectiveKind::kRunMoney:
      objective.unit = "";
      break;
    case ObjectiveKind::kTime:
    case ObjectiveKind::kRunTime:
    case ObjectiveKind::kNumber:
      break;
  }
  return objective;
}

}  // namespace

Price ReadPrice(const JsonReader& reader) {
  const auto [number, currency] =
      NumberBefore(reader.String(), "/h").value_or(std::pair(0.0, std::string()));
  const bool is_currency = !currency.empty() && currency.size() <= 8 &&
                           std::none_of(currency.begin(), currency.end(), [](char c) {
                             return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '/' ||
                                    static_cast<unsigned char>(c) < ' ';
                           });
  if (!is_currency) reader.Expected("a price such as \"2.5USD/h\"");
  return {number, currency};
}

double ReadPower(const JsonReader& reader) {
  const auto power = NumberBefore(reader.String(), "W");
  if (!power || (!power->second.empty() && power->second != "k"))
    reader.Expected("a power such as \"700W\" or \"0.7kW\"");
  return power->first * (power->second.empty() ? 1 : 1000);
}

Rates ReadRates(const JsonReader& search) {
  Rates rates;
  if (search.Has("price")) rates.price = ReadPrice(search.At("price"));
  if (search.Has("power")) rates.watts = ReadPower(search.At("power"));
  return rates;
}

double ValueOf(const Objective& objective, const Result& result, const std::string& device,
               const Rates& rates) {
  switch (objective.kind) {
    case ObjectiveKind::kTime:
      return result.step.value();
    case ObjectiveKind::kTokens:
      return result.tokens_per_second;
    case ObjectiveKind::kGpuHours:
      return GpuHoursOf(result);
    case ObjectiveKind::kMoney:
      if (!rates.price)
        throw Error("money needs \"price\", such as \"2.5USD/h\" of a GPU, in the search");
      return rates.price->number * GpuHoursOf(result);
    case ObjectiveKind::kEnergy: {
      const std::optional<double> watts = rates.watts ? rates.watts : BoardPowerOf(device);
      if (!watts)
        throw Error(
            fmt::format("the power of {} is not known from a data sheet; expected \"power\", such "
                        "as \"700W\", in the search",
                        device));
      const double busy = 1 - result.breakdown.idle / result.step;
      return GpuHoursOf(result) * *watts * busy / 1000;
    }
    case ObjectiveKind::kMemory:
      return result.MemoryNeeded().value();
    case ObjectiveKind::kNumber: {
      const nlohmann::json value =
          ValueAt(nlohmann::json::parse(ToJson(result).dump()), objective.number);
      if (!value.is_number())
        throw Error(fmt::format("the result has no number \"{}\"", objective.number));
      return value.get<double>();
    }
    case ObjectiveKind::kRunTime:
    case ObjectiveKind::kRunMoney:
    case ObjectiveKind::kRunEnergy:
      break;
  }
  CHECK(false);
}

double ValueOf(const Objective& objective, const PointRun& run) {
  CHECK(objective.IsOfRun());
  if (objective.kind == ObjectiveKind::kRunTime) return run.seconds.median;
  const std::optional<RunSpread>& spread =
      objective.kind == ObjectiveKind::kRunMoney ? run.money : run.kilowatt_hours;
  CHECK(spread.has_value());
  return spread->median;
}

std::vector<Objective> ReadObjectives(const JsonReader& search) {
  const JsonReader reader = search.At("objective");
  std::vector<Objective> objectives;
  if (reader.IsArray()) {
    for (const JsonReader& one : reader.Elements()) objectives.push_back(ReadObjective(one));
  } else {
    objectives.push_back(ReadObjective(reader));
  }
  if (objectives.empty() || objectives.size() > 2) reader.Expected("one or two objectives");
  if (objectives.size() == 2 && objectives[0].name == objectives[1].name)
    reader.Expected("two different objectives");
  return objectives;
}

std::string Print(const Objective& objective, double value) {
  switch (objective.kind) {
    case ObjectiveKind::kTime:
      return Print(Seconds(value));
    case ObjectiveKind::kMemory:
      return Print(Bytes(value));
    case ObjectiveKind::kTokens:
      return fmt::format("{:.0f}/s", value);
    case ObjectiveKind::kRunTime:
      return PrintLongTime(Seconds(value));
    case ObjectiveKind::kRunMoney:
    case ObjectiveKind::kRunEnergy:
      if (value < 100) return fmt::format("{:.4g} {}", value, objective.unit);
      return fmt::format("{} {}", Grouped(static_cast<uint64_t>(std::llround(value))),
                         objective.unit);
    case ObjectiveKind::kGpuHours:
    case ObjectiveKind::kMoney:
    case ObjectiveKind::kEnergy:
    case ObjectiveKind::kNumber:
      break;
  }
  return objective.unit.empty() ? fmt::format("{:.4g}", value)
                                : fmt::format("{:.4g} {}", value, objective.unit);
}

}  // namespace rehearse
