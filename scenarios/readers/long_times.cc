#include "scenarios/readers/long_times.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace rehearse {
namespace {

struct LongUnit {
  std::string_view name;
  double seconds;
};
// The first of a kind is how it is written.
constexpr std::array kLongUnits = {LongUnit{" years", 365.25 * 86400},
                                   LongUnit{" year", 365.25 * 86400},
                                   LongUnit{" weeks", 7 * 86400},
                                   LongUnit{" week", 7 * 86400},
                                   LongUnit{" days", 86400},
                                   LongUnit{" day", 86400},
                                   LongUnit{"h", 3600},
                                   LongUnit{"min", 60},
                                   LongUnit{"s", 1},
                                   LongUnit{"ms", 1e-3}};

struct CountUnit {
  std::string_view name;
  double factor;
};
constexpr std::array kCountUnits = {CountUnit{"T", 1e12}, CountUnit{"G", 1e9}, CountUnit{"B", 1e9},
                                    CountUnit{"M", 1e6},  CountUnit{"k", 1e3}, CountUnit{"", 1}};

constexpr double kLongest = 1e13;  // some 300,000 years
constexpr double kRarest = 1e30;   // seconds between failures
constexpr double kMostCount = 1e18;

std::string_view WithoutBlanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

// A finite number of zero or more, and what follows it without blanks; nothing for anything else.
std::optional<std::pair<double, std::string_view>> NumberAndUnit(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  double number = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || !std::isfinite(number)) return std::nullopt;
  return std::pair(number, WithoutBlanks(text.substr(static_cast<size_t>(stop - text.data()))));
}

std::optional<double> SecondsOf(std::string_view unit) {
  for (const LongUnit& one : kLongUnits)
    if (WithoutBlanks(one.name) == unit) return one.seconds;
  return std::nullopt;
}

[[noreturn]] void Fail(std::string_view text, const char* expected) {
  constexpr size_t kMostShown = 60;
  throw Error(fmt::format("found {:?}, expected {}", text.substr(0, kMostShown), expected));
}

constexpr const char* kExpectedTime =
    "a time of zero or more with its unit (s, min, h, days, weeks, years) such as \"10min\"";
constexpr const char* kExpectedRate =
    "a rate of zero or more such as \"2.4e-5/h\", the mean time between two failures such as "
    "\"12 years\", or \"never\"";
constexpr const char* kExpectedCount =
    "a number above zero, with k, M, G, B or T where it is large, such as \"15T\"";

// In the largest unit in which it is a whole number.
std::string LongTimeText(double seconds) {
  for (const LongUnit& unit : kLongUnits) {
    const double number = seconds / unit.seconds;
    if (number >= 1 && std::floor(number) == number && number * unit.seconds == seconds)
      return fmt::format("{}{}", number, unit.name);
  }
  return fmt::format("{}s", seconds);
}

template <typename Value, Value (*kParse)(std::string_view)>
void ReadText(const JsonReader& reader, Value* value) {
  const std::string text = reader.String();
  try {
    *value = kParse(text);
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

void WriteLongTime(const Seconds& time, nlohmann::ordered_json* to) {
  *to = LongTimeText(time.value());
}
void WriteFailureRate(const FailureRate& rate, nlohmann::ordered_json* to) {
  *to = rate.per_second > 0 ? fmt::format("{}/s", rate.per_second) : "never";
}
void WriteCount(const double& count, nlohmann::ordered_json* to) { *to = fmt::format("{}", count); }

}  // namespace

Seconds ParseLongTime(std::string_view text) {
  const auto found = NumberAndUnit(text);
  const std::optional<double> unit = found ? SecondsOf(found->second) : std::nullopt;
  if (!unit || found->first * *unit > kLongest) Fail(text, kExpectedTime);
  return Seconds(found->first * *unit);
}

FailureRate ParseFailureRate(std::string_view text) {
  if (text == "never") return {};
  const auto found = NumberAndUnit(text);
  if (!found) Fail(text, kExpectedRate);
  const bool is_rate = found->second.starts_with('/');
  const std::optional<double> unit =
      SecondsOf(WithoutBlanks(found->second.substr(is_rate ? 1 : 0)));
  if (!unit) Fail(text, kExpectedRate);
  const double seconds = is_rate ? *unit / found->first : found->first * *unit;
  if (is_rate && found->first == 0) return {};
  if (!(seconds >= 1) || seconds > kRarest) Fail(text, kExpectedRate);
  return {is_rate ? found->first / *unit : 1 / seconds};
}

double ParseCount(std::string_view text) {
  const auto found = NumberAndUnit(text);
  if (!found) Fail(text, kExpectedCount);
  for (const CountUnit& unit : kCountUnits) {
    if (unit.name != found->second) continue;
    const double count = found->first * unit.factor;
    if (!(count >= 1) || count > kMostCount) break;
    return count;
  }
  Fail(text, kExpectedCount);
}

std::string PrintLongTime(Seconds time) {
  const double seconds = time.value();
  if (seconds >= 2 * 365.25 * 86400) return fmt::format("{:.3g} years", seconds / 365.25 / 86400);
  if (seconds >= 2 * 86400) {
    const double days = seconds / 86400;
    return days < 100 ? fmt::format("{:.3g} days", days) : fmt::format("{:.0f} days", days);
  }
  if (seconds >= 100 * 60) return fmt::format("{:.3g} h", seconds / 3600);
  if (seconds >= 100) return fmt::format("{:.3g} min", seconds / 60);
  return seconds >= 1 || seconds == 0 ? fmt::format("{:.3g} s", seconds)
                                      : fmt::format("{:.3g} ms", 1000 * seconds);
}

std::string PrintCount(double count) {
  for (const CountUnit& unit : kCountUnits)
    if (count >= unit.factor && unit.name != "B")
      return fmt::format("{:.4g}{}", count / unit.factor, unit.name);
  return fmt::format("{:.4g}", count);
}

FieldShape ALongTime() {
  return ReadBy<Seconds>(AText("time such as 10min, 3h, 54 days"), ReadText<Seconds, ParseLongTime>,
                         WriteLongTime);
}
FieldShape AFailureRate() {
  return ReadBy<FailureRate>(
      AText("rate of one part such as 2.4e-5/h, or mean time such as 12 years"),
      ReadText<FailureRate, ParseFailureRate>, WriteFailureRate);
}
FieldShape ACountOf(const char* what) {
  return ReadBy<double>(AText(what), ReadText<double, ParseCount>, WriteCount);
}

}  // namespace rehearse
