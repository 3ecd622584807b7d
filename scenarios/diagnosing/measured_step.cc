#include "scenarios/diagnosing/measured_step.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

[[noreturn]] void Refuse(std::string_view text, const std::string& why) {
  throw Error(fmt::format("--measured: found \"{}\", expected {}", text, why));
}

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct NumberAndUnit {
  double number = 0;
  std::string unit;  // in small letters, without blanks
};

std::optional<NumberAndUnit> Split(std::string_view text) {
  std::string digits;
  size_t at = 0;
  while (at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) != 0 ||
                              text[at] == '.' || text[at] == ',')) {
    if (text[at] != ',') digits += text[at];
    ++at;
  }
  NumberAndUnit split;
  const char* const end = digits.data() + digits.size();
  const auto [stop, fault] = std::from_chars(digits.data(), end, split.number);
  if (digits.empty() || fault != std::errc() || stop != end) return std::nullopt;
  for (const char c : text.substr(at))
    if (c != ' ') split.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return split;
}

// "/s" and "/s/gpu" behind a name of what is trained on.
bool IsRate(const std::string& unit, const char* end) {
  for (const char* name : {"tokens", "token", "tok", "images", "image", "samples", "sample"})
    if (unit == std::string(name) + end) return true;
  return false;
}

struct NamedPart {
  std::string_view name;
  StepMeasure measure;
};
constexpr std::array kParts = {NamedPart{"compute ", StepMeasure::kCompute},
                               NamedPart{"exposed communication ", StepMeasure::kExposed},
                               NamedPart{"exposed ", StepMeasure::kExposed},
                               NamedPart{"idle ", StepMeasure::kIdle}};

void Read(std::string_view value, std::string_view text, MeasuredStep* measured) {
  constexpr const char* kExpected =
      "a step (\"2.3 s\"), a part of it (\"compute 0.8 s\", \"exposed 1.6 s\", \"idle 0 s\"), a "
      "rate (\"840 tokens/s/gpu\", \"14089 tokens/s\", \"410 TFLOP/s/gpu\") "
      "or "
      "a utilisation (\"45 % MFU\")";
  for (const NamedPart& part : kParts) {
    if (!value.starts_with(part.name)) continue;
    measured->measure = part.measure;
    try {
      measured->value = ParseDuration(WithoutBlanks(value.substr(part.name.size()))).value();
    } catch (const Error&) {
      Refuse(text, kExpected);
    }
    return;
  }
  const std::optional<NumberAndUnit> split = Split(value);
  if (!split) Refuse(text, kExpected);
  measured->value = split->number;
  const std::string& unit = split->unit;
  if (unit.ends_with("mfu")) {
    measured->measure = StepMeasure::kUtilization;
    if (unit == "%mfu") {
      measured->value /= 100;
    } else if (unit != "mfu") {
      Refuse(text, kExpected);
    }
    if (measured->value > 1) Refuse(text, "a utilisation of at most 100 %");
  } else if (IsRate(unit, "/s/gpu") || IsRate(unit, "/s/device")) {
    measured->measure = StepMeasure::kTokensPerDevice;
  } else if (IsRate(unit, "/s")) {
    measured->measure = StepMeasure::kTokens;
  } else if (unit == "tflop/s/gpu" || unit == "tflops/gpu" || unit == "tflops/s/gpu") {
    measured->measure = StepMeasure::kOperationsPerDevice;
    measured->value *= 1e12;
  } else {
    try {
      measured->value = ParseDuration(value).value();
    } catch (const Error&) {
      Refuse(text, kExpected);
    }
  }
  if (!(measured->value > 0)) Refuse(text, "more than nothing");
}

double NumberOf(const MeasuredStep& measured, const Result& result) {
  switch (measured.measure) {
    case StepMeasure::kStep:
      return result.step.value();
    case StepMeasure::kTokens:
      return result.tokens_per_second;
    case StepMeasure::kTokensPerDevice:
      return result.tokens_per_second / result.ranks;
    case StepMeasure::kUtilization:
      return result.model_flops_utilization;
    case StepMeasure::kOperationsPerDevice:
      return result.model_flops_utilization * result.peak.value();
    case StepMeasure::kCompute:
      return result.breakdown.compute.value();
    case StepMeasure::kExposed:
      return result.breakdown.exposed_communication.value();
    case StepMeasure::kIdle:
      return result.breakdown.idle.value();
    case StepMeasure::kNotComputing:
      return (result.breakdown.exposed_communication + result.breakdown.idle).value();
  }
  CHECK(false);
}

}  // namespace

MeasuredStep ParseMeasuredStep(std::string_view text) {
  MeasuredStep measured;
  measured.text = std::string(WithoutBlanks(text));
  constexpr std::string_view kWith = " with ";
  const size_t with = text.find(kWith);
  Read(WithoutBlanks(text.substr(0, with)), text, &measured);
  if (with == std::string_view::npos) return measured;
  std::string_view rest = text.substr(with + kWith.size());
  while (true) {
    const size_t comma = rest.find(", ");
    const std::string_view change = WithoutBlanks(rest.substr(0, comma));
    if (change.find('=') == std::string_view::npos)
      Refuse(text, "behind \"with\" what differs, such as \"cluster.nodes=8\"");
    measured.changes.emplace_back(change);
    if (comma == std::string_view::npos) return measured;
    rest = rest.substr(comma + 2);
  }
}

bool IsPart(StepMeasure measure) { return measure >= StepMeasure::kCompute; }

double LogTimeOf(const MeasuredStep& measured, Seconds floor) {
  if (IsPart(measured.measure)) return std::log(measured.value + floor.value());
  const double log = std::log(measured.value);
  return measured.measure == StepMeasure::kStep ? log : -log;
}

double LogTimeOf(const MeasuredStep& measured, const Result& result, Seconds floor) {
  const double number = NumberOf(measured, result);
  if (!(number > 0) && !IsPart(measured.measure))
    throw Error(
        fmt::format("--measured: found \"{}\", but the step has no such number: it is of no "
                    "model whose tokens or operations are known",
                    measured.text));
  return LogTimeOf(MeasuredStep{measured.text, measured.measure, number}, floor);
}

std::string WordsOf(const MeasuredStep& measured, double log_time, Seconds floor) {
  const double time = std::exp(log_time);
  switch (measured.measure) {
    case StepMeasure::kStep:
      return Print(Seconds(time));
    case StepMeasure::kTokens:
      return fmt::format("{:.0f} tokens/s", 1 / time);
    case StepMeasure::kTokensPerDevice:
      return fmt::format("{:.4g} tokens/s/gpu", 1 / time);
    case StepMeasure::kUtilization:
      return fmt::format("{:.1f} % MFU", 100 / time);
    case StepMeasure::kOperationsPerDevice:
      return fmt::format("{:.1f} TFLOP/s/gpu", 1 / time / 1e12);
    default:
      // What is left of nothing by rounding is nothing.
      return Print(Seconds(time - floor.value() < 1e-9 ? 0 : time - floor.value()));
  }
}

}  // namespace rehearse
