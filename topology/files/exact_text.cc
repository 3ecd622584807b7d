#include "topology/files/exact_text.h"

#include <span>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

struct Unit {
  std::string_view name;
  double size;      // in SI
  double fraction;  // or its reciprocal, if that is the exact one
};

// The shortest text that `parse` reads as exactly this quantity.
template <typename Parse>
std::string Shortest(double value, std::span<const Unit> units, Parse parse) {
  std::string best;
  for (const Unit& unit : units) {
    const double number = value / unit.size * unit.fraction;
    if (value != 0 && !(number > 0)) continue;
    // 15 digits leave out the rounding error of the line above; 17 are always enough for the SI
    // unit.
    for (const std::string& digits : {fmt::format("{:.15g}", number), fmt::format("{}", number)}) {
      const std::string text = fmt::format("{}{}", digits, unit.name);
      if (!best.empty() && text.size() >= best.size()) continue;
      if (parse(text).value() == value) best = text;
    }
  }
  CHECK(!best.empty());
  return best;
}

constexpr double kKibi = 1024;
constexpr double kMebi = 1024 * kKibi;
constexpr double kGibi = 1024 * kMebi;
constexpr double kTebi = 1024 * kGibi;

template <typename Value>
FieldShape Exact(JsonShape quantity) {
  return WrittenAs(std::move(quantity), [](double value) { return ExactText(Value(value)); });
}

}  // namespace

std::string ExactText(BytesPerSecond bandwidth) {
  static constexpr Unit kUnits[] = {{"Bps", 1, 1},       {"GBps", 1e9, 1},   {"MBps", 1e6, 1},
                                    {"kBps", 1e3, 1},    {"TBps", 1e12, 1},  {"KiBps", kKibi, 1},
                                    {"MiBps", kMebi, 1}, {"GiBps", kGibi, 1}};
  return Shortest(bandwidth.value(), kUnits, ParseBandwidth);
}

std::string ExactText(Seconds duration) {
  static constexpr Unit kUnits[] = {
      {"us", 1, 1e6}, {"s", 1, 1}, {"ms", 1, 1e3}, {"ns", 1, 1e9}, {"ps", 1, 1e12}};
  if (duration == Seconds(0)) return "0us";
  return Shortest(duration.value(), kUnits, ParseDuration);
}

std::string ExactText(Bytes size) {
  static constexpr Unit kUnits[] = {{"B", 1, 1},       {"GiB", kGibi, 1}, {"MiB", kMebi, 1},
                                    {"KiB", kKibi, 1}, {"TiB", kTebi, 1}, {"GB", 1e9, 1},
                                    {"MB", 1e6, 1}};
  return Shortest(size.value(), kUnits, ParseSize);
}

std::string ExactText(FlopsPerSecond rate) {
  static constexpr Unit kUnits[] = {
      {"FLOPS", 1, 1}, {"TFLOPS", 1e12, 1}, {"GFLOPS", 1e9, 1}, {"PFLOPS", 1e15, 1}};
  return Shortest(rate.value(), kUnits, ParseFlopRate);
}

FieldShape AnExactBandwidth() { return Exact<BytesPerSecond>(ABandwidth()); }
FieldShape AnExactDuration() { return Exact<Seconds>(ADuration()); }
FieldShape AnExactDurationUpTo(Seconds longest) { return Exact<Seconds>(ADurationUpTo(longest)); }
FieldShape AnExactSize() { return Exact<Bytes>(ASize()); }
FieldShape AnExactFlopRate() { return Exact<FlopsPerSecond>(AFlopRate()); }

}  // namespace rehearse
