// Which published steps a step is like, and how close predictions of these are: what
// `rehearse validate scenarios/validation/published.csv` says, as a table that
// tests/scenarios/sweeping/validated_steps_test.cc checks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scenarios/readers/scenario.h"
#include "sim/report/result.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

// Rows of one device that ran one software with one kind of strategy.
struct ValidatedSteps {
  const char* device = "";
  const char* software = "";  // "" if the row names none
  const char* strategy = "";
  uint32_t rows = 0;
  uint32_t fewest = 0;  // GPUs
  uint32_t most = 0;
  double mean_error = 0;
  double bias = 0;
};

std::span<const ValidatedSteps> ValidatedTable();

// The rows of the step's device with its software; if there are none, with its strategy; if there
// are none, all of the device. Nothing for devices that are not GPUs or that were measured.
std::optional<Trust> TrustOf(const Scenario& scenario, const Job& job);

}  // namespace rehearse
