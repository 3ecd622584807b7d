#include "sim/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "sim/base/clock.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// One unit is numerator / denominator in SI base units. Keeping both means that one rounding is
// enough: 1.5us is 1.5 / 1e6, the double nearest to 0.0000015.
struct Unit {
  std::string name;
  double numerator = 1;
  double denominator = 1;
};

struct Prefix {
  const char* name;
  double factor;
};
constexpr Prefix kDecimalPrefixes[] = {{"", 1},    {"k", 1e3},  {"M", 1e6},
                                       {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
constexpr Prefix kBinaryPrefixes[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}};

void AddPrefixed(std::vector<Unit>& units, std::span<const Prefix> prefixes, const char* name,
                 double denominator) {
  for (const Prefix& prefix : prefixes)
    units.push_back({std::string(prefix.name) + name, prefix.factor, denominator});
}

// A kind of quantity: what a person calls it, an example, and the units it is read in.
struct Kind {
  const char* what;
  const char* example;
  bool zero_allowed;
  std::vector<Unit> units;
  double least = 0;  // above zero
  double most = std::numeric_limits<double>::max();
  const char* most_in_words = nullptr;
};

const Kind& BandwidthKind() {
  static const Kind kind = [] {
    Kind k{"a bandwidth", "25GBps", false, {}, kLeastBandwidth.value(), kMostBandwidth.value()};
    constexpr double kBitsPerByte = 8;
    for (const auto& prefixes :
         {std::span<const Prefix>(kDecimalPrefixes), std::span<const Prefix>(kBinaryPrefixes)}) {
      AddPrefixed(k.units, prefixes, "Bps", 1);
      AddPrefixed(k.units, prefixes, "bps", kBitsPerByte);
      AddPrefixed(k.units, prefixes, "B/s", 1);
      AddPrefixed(k.units, prefixes, "b/s", kBitsPerByte);
    }
    return k;
  }();
  return kind;
}

const Kind& SizeKind() {
  static const Kind kind = [] {
    Kind k{"a size", "40GiB", false, {}, 0, 1e40};
    AddPrefixed(k.units, kDecimalPrefixes, "B", 1);
    AddPrefixed(k.units, kBinaryPrefixes, "B", 1);
    return k;
  }();
  return kind;
}

const Kind& FlopRateKind() {
  static const Kind kind = [] {
    Kind k{"a rate of computation", "312TFLOPS", false, {}, 1e-6, 1e30};
    AddPrefixed(k.units, kDecimalPrefixes, "FLOPS", 1);
    AddPrefixed(k.units, kDecimalPrefixes, "FLOP/s", 1);
    return k;
  }();
  return kind;
}

const Kind& FlopsKind() {
  static const Kind kind = [] {
    Kind k{"a number of operations", "1.5TFLOP", true, {}, 0, 1e40};
    AddPrefixed(k.units, kDecimalPrefixes, "FLOP", 1);
    return k;
  }();
  return kind;
}

// When rounded to the clock, it is not yet beyond the range.
constexpr double kLongestDuration = kBeyondSeconds.value() * (1 - 0x1p-50);

const Kind& DurationKind() {
  static const Kind kind{
      "a time",   "1.5us",
      true,       {{"s", 1, 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}, {"ps", 1, 1e12}},
      0,          kLongestDuration,
      kClockRange};
  return kind;
}

std::string Quote(std::string_view text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return fmt::format("{:?}", text);
  return fmt::format("{:?}...", text.substr(0, kLongest));
}

// Most mistakes are in upper and lower case: "KB" means "kB" and not "B".
std::string HintFor(const std::string& name, const Kind& kind) {
  if (name.empty()) return "";
  const auto same_letter = [](unsigned char a, unsigned char b) { return (a | 32) == (b | 32); };
  std::vector<std::string> names;
  std::vector<std::string> same_letters;
  for (const Unit& unit : kind.units) {
    names.push_back(unit.name);
    if (std::equal(name.begin(), name.end(), unit.name.begin(), unit.name.end(), same_letter))
      same_letters.push_back(unit.name);
  }
  const std::string hint = DidYouMean(name, same_letters);
  return hint.empty() ? DidYouMean(name, names) : hint;
}

// The number in SI base units.
double Parse(std::string_view text, const Kind& kind) {
  const auto fail = [&](const std::string& expected, const std::string& hint = "") {
    throw Error(fmt::format("found {}, expected {} such as \"{}\"{}", Quote(text), expected,
                            kind.example, hint));
  };
  const std::string with_unit = fmt::format("{} with its unit", kind.what);

  // from_chars also reads "inf" and "nan"; our numbers start with a digit, perhaps after a sign.
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (first == text.size() || text[first] < '0' || text[first] > '9') fail(with_unit);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  const bool out_of_range = fault == std::errc::result_out_of_range;
  if (fault != std::errc() && !out_of_range) fail(with_unit);

  std::string_view name(stop, static_cast<size_t>(end - stop));
  while (name.starts_with(' ')) name.remove_prefix(1);
  const auto unit = std::find_if(kind.units.begin(), kind.units.end(),
                                 [&](const Unit& candidate) { return candidate.name == name; });
  if (unit == kind.units.end()) fail(with_unit, HintFor(std::string(name), kind));

  if (text.starts_with('-') || (number == 0 && !out_of_range && !kind.zero_allowed))
    fail(fmt::format("{} {} zero", kind.what, kind.zero_allowed ? "not below" : "above"));
  const double value = number * unit->numerator / unit->denominator;
  if (value > kind.most && kind.most_in_words != nullptr)
    fail(fmt::format("{} of at most {}", kind.what, kind.most_in_words));
  if (out_of_range || value > kind.most || (value < kind.least && value > 0) ||
      (value == 0 && number != 0))
    fail(fmt::format("{} that is neither astronomically large nor small", kind.what));
  return value;
}

std::string PatternOf(const Kind& kind) {
  std::string units;
  for (const Unit& unit : kind.units) units += (units.empty() ? "" : "|") + unit.name;
  return fmt::format("^[0-9]+\\.?[0-9]*([eE][-+]?[0-9]+)? *({})$", units);
}

// Four significant digits, but always every digit before the point; shorter when the rest are
// zeros.
std::string FourDigits(double value) {
  constexpr double kAllBeforePoint = 1e4;
  constexpr double kTooLong = 1e15;
  const double magnitude = std::abs(value);
  if (magnitude >= kAllBeforePoint && magnitude < kTooLong) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

// The first of the shortest, in the order of the units.
std::string ExactlyIn(const Kind& kind, double value) {
  CHECK(std::isfinite(value) && value >= 0);
  std::string shortest;
  for (const Unit& unit : kind.units) {
    const double number = value * unit.denominator / unit.numerator;
    if (number * unit.numerator / unit.denominator != value) continue;
    std::string text = fmt::format("{}{}", number, unit.name);
    if (shortest.empty() || text.size() < shortest.size()) shortest = std::move(text);
  }
  CHECK(!shortest.empty());  // in SI base units nothing is rounded
  return shortest;
}

struct PrintUnit {
  const char* name;
  double numerator;
  double denominator;
};

// `units` from small to large: the largest in which the printed number is at least 1,
// else the first.
std::string PrintIn(std::span<const PrintUnit> units, const char* zero, double value) {
  if (value == 0) return std::string("0 ") + zero;
  std::string text;
  const auto in = [&](const PrintUnit& unit) { return value * unit.denominator / unit.numerator; };
  for (const PrintUnit& unit : units) {
    // What is at least 1 in the next unit is not printed in this one.
    const bool is_last = &unit == &units.back();
    if (!is_last && std::abs(in(*(&unit + 1))) >= 1) continue;
    const std::string digits = FourDigits(in(unit));
    // Judge the rounded number, so that 999.96 GB/s becomes 1 TB/s and not 1000 GB/s.
    double printed = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), printed);
    if (!text.empty() && !(std::abs(printed) >= 1)) break;
    text = digits + " " + unit.name;
  }
  return text;
}

}  // namespace

BytesPerSecond ParseBandwidth(std::string_view text) {
  return BytesPerSecond(Parse(text, BandwidthKind()));
}
Seconds ParseDuration(std::string_view text) { return Seconds(Parse(text, DurationKind())); }
Bytes ParseSize(std::string_view text) { return Bytes(Parse(text, SizeKind())); }
FlopsPerSecond ParseFlopRate(std::string_view text) {
  return FlopsPerSecond(Parse(text, FlopRateKind()));
}
Flops ParseFlops(std::string_view text) { return Flops(Parse(text, FlopsKind())); }

std::string BandwidthPattern() { return PatternOf(BandwidthKind()); }
std::string DurationPattern() { return PatternOf(DurationKind()); }
std::string SizePattern() { return PatternOf(SizeKind()); }
std::string FlopRatePattern() { return PatternOf(FlopRateKind()); }
std::string FlopsPattern() { return PatternOf(FlopsKind()); }

std::string Print(BytesPerSecond bandwidth) {
  static constexpr PrintUnit kUnits[] = {{"B/s", 1, 1},    {"kB/s", 1e3, 1},  {"MB/s", 1e6, 1},
                                         {"GB/s", 1e9, 1}, {"TB/s", 1e12, 1}, {"PB/s", 1e15, 1}};
  return PrintIn(kUnits, "B/s", bandwidth.value());
}

std::string Print(Seconds duration) {
  static constexpr PrintUnit kUnits[] = {
      {"ps", 1, 1e12}, {"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1, 1}};
  return PrintIn(kUnits, "s", duration.value());
}

std::string Print(Bytes size) {
  static constexpr PrintUnit kUnits[] = {{"B", 1, 1},
                                         {"KiB", 1024.0, 1},
                                         {"MiB", 1048576.0, 1},
                                         {"GiB", 1073741824.0, 1},
                                         {"TiB", 1099511627776.0, 1}};
  return PrintIn(kUnits, "B", size.value());
}

std::string Print(FlopsPerSecond rate) {
  static constexpr PrintUnit kUnits[] = {{"FLOP/s", 1, 1},     {"kFLOP/s", 1e3, 1},
                                         {"MFLOP/s", 1e6, 1},  {"GFLOP/s", 1e9, 1},
                                         {"TFLOP/s", 1e12, 1}, {"PFLOP/s", 1e15, 1}};
  return PrintIn(kUnits, "FLOP/s", rate.value());
}

// A schedule has few sizes and times, each of them very often.
const std::string& Remembered(const Kind& kind, double value) {
  struct Entry {
    const Kind* kind = nullptr;
    uint64_t bits = 0;
    std::string text;
  };
  constexpr size_t kEntries = 256;
  constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;
  constexpr int kToByte = 56;
  thread_local std::array<Entry, kEntries> entries;
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  Entry& entry = entries[(bits * kMixer) >> kToByte];
  if (entry.kind != &kind || entry.bits != bits) entry = {&kind, bits, ExactlyIn(kind, value)};
  return entry.text;
}
std::string PrintExactly(Seconds duration) { return Remembered(DurationKind(), duration.value()); }
std::string PrintExactly(Bytes size) { return Remembered(SizeKind(), size.value()); }
std::string PrintExactly(Flops flops) { return Remembered(FlopsKind(), flops.value()); }

}  // namespace rehearse
