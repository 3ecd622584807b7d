// What tests of diagnoses of steps share: shipped steps, causes that are put into them at random,
// and how often they are found.
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/diagnosing/step_diagnosis.h"
#include "scenarios/evaluating/engine.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {

inline JsonDocument ShippedStep(const std::string& name) {
  return JsonDocument::FromFile(SourceDir() + "/scenarios/" + name + ".json");
}

// The same numbers on every machine and with every library.
class StepDice {
 public:
  explicit StepDice(uint64_t seed) : engine_(seed) {}
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  size_t Below(size_t count) { return static_cast<size_t>(engine_() % count); }
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }

 private:
  std::mt19937_64 engine_;
};

inline constexpr const char* kRandomSteps[] = {"strategy-fsdp",       "strategy-megatron",
                                               "strategy-fsdp-llama", "axonn-fig3-abcde",
                                               "strategy-zero-2",     "strategy-zero-1"};

// How many steps a test diagnoses: as many as REHEARSE_DIAGNOSES says, else `few`.
inline size_t StepsToDiagnose(size_t few) {
  const char* const wanted = std::getenv("REHEARSE_DIAGNOSES");
  return wanted == nullptr ? few : std::strtoul(wanted, nullptr, 10);
}

inline double RandomStrength(const StepCause& cause, StepDice& dice) {
  if (!cause.is_graded) return cause.strengths[dice.Below(cause.strengths.size())];
  return cause.strengths.front() *
         std::pow(cause.strengths.back() / cause.strengths.front(), dice.Uniform());
}

// The scenario with the cause; nothing if it cannot be.
inline std::optional<JsonDocument> WithCause(const JsonDocument& scenario, const StepCause& cause,
                                             double strength, Engine& engine) {
  try {
    JsonDocument document = scenario;
    const nlohmann::json given = document.value();
    const Scenario read = engine.Read(document);
    const std::vector<std::string> changes = cause.changes({given, *read.cluster}, strength);
    if (changes.empty()) return std::nullopt;
    for (const std::string& change : changes) document.Set(change);
    return document;
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct StepScore {
  size_t faults = 0;
  size_t first = 0;        // in the first finding
  size_t among_three = 0;  // findings
  size_t healthy = 0;
  size_t healthy_found = 0;
  size_t causes_in_first = 0;
  std::map<std::string, std::map<std::string, size_t>> confusions = {};

  // `cause` is "" where nothing was put in.
  void Add(const std::string& cause, const StepDiagnosis& diagnosis) {
    if (cause.empty()) {
      ++healthy;
      healthy_found += diagnosis.is_something_wrong ? 0 : 1;
      return;
    }
    size_t place = 0;
    for (size_t i = diagnosis.findings.size(); i-- > 0;)
      for (const SuspectedStepCause& suspect : diagnosis.findings[i].causes)
        if (suspect.cause->name == cause) place = i + 1;
    ++faults;
    first += place == 1 ? 1 : 0;
    among_three += place >= 1 && place <= 3 ? 1 : 0;
    if (!diagnosis.findings.empty()) causes_in_first += diagnosis.findings.front().causes.size();
    ++confusions[cause][place == 1 ? cause
                        : diagnosis.findings.empty()
                            ? "nothing"
                            : diagnosis.findings.front().causes.front().cause->name];
  }

  void PrintAndExpect() const {
    for (const auto& [truth, found] : confusions) {
      fmt::print("  {:<21}", truth);
      for (const auto& [name, count] : found) fmt::print(" {} {}", name, count);
      fmt::print("\n");
    }
    const auto all = static_cast<double>(faults);
    fmt::print(
        "{} steps with a fault: its cause is in the first finding of {:.1f} % (which has {:.1f} "
        "causes in the mean), in the first three of {:.1f} %; {} without: nothing is found in {}\n",
        faults, 100 * static_cast<double>(first) / all, static_cast<double>(causes_in_first) / all,
        100 * static_cast<double>(among_three) / all, healthy, healthy_found);
    EXPECT_GE(static_cast<double>(first), 0.85 * all);
    EXPECT_GE(static_cast<double>(among_three), 0.95 * all);
    EXPECT_GE(static_cast<double>(healthy_found), 0.95 * static_cast<double>(healthy));
  }
};

}  // namespace rehearse
