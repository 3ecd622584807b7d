// Which published steps a step is like, and how close predictions of these are: what
// `rehearse validate` says of the tables in scenarios/validation/, as a table that
// tests/scenarios/sweeping/validated_steps_test.cc checks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scenarios/readers/scenario.h"
#include "sim/report/result.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// What a step has beyond data, tensor and sequence parallelism, and which table has such steps.
enum class StepClass : uint8_t {
  kPlain,     // published.csv
  kStages,    // published-stages.csv: stages, or shared sequences
  kExperts,   // published-experts.csv: experts, with or without stages
  kAdapters,  // published-adapters.csv: all but low-rank adapters is frozen
  kHybrids,   // published-hybrids.csv: state-space layers, without experts
};

// Rows of one device that ran one software with one kind of strategy.
struct ValidatedSteps {
  StepClass kind = StepClass::kPlain;
  const char* device = "";
  const char* software = "";  // "" if the row names none
  const char* strategy = "";  // of plain steps
  uint32_t rows = 0;
  uint32_t fewest = 0;  // GPUs
  uint32_t most = 0;
  double mean_error = 0;
  double bias = 0;
};

std::span<const ValidatedSteps> ValidatedTable();

// The rows of its kind, of the step's device with its software; if there are none, with its
// strategy; if there are none, all of the device; if there are none of its kind, plain ones.
// Nothing for devices that are not GPUs or that were measured, for steps that are perturbed or
// timed by the user's own points, and for schedules that are of no model, as those from others'
// traces.
std::optional<Trust> TrustOf(const Scenario& scenario, const Job& job);

}  // namespace rehearse
