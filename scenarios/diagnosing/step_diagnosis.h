// What is wrong where a training step is slower than it should be.
//
// As for a log (scenarios/diagnosing/log_diagnosis.h): every cause of the table
// (scenarios/diagnosing/step_cause.h) is simulated, its strength fitted, and weighed by what was
// measured. One number says little: many causes explain it, and are then one finding, told apart by
// how much of the step is compute, exposed communication and idle time in a profile, or by a
// measurement of a run of another size.
// Predictions err by what they erred by for the published steps most like this one
// (scenarios/playing/validated_steps.h), else by 12 %; those of two runs err nearly alike, those of
// compute and communication half, and parts that are not compute by a quarter. Where no cause alone
// does, two at once are looked for (scenarios/diagnosing/pairs.h): what one number says, one cause
// can always explain, so that takes several runs or parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/diagnosing/measured_step.h"
#include "scenarios/diagnosing/step_cause.h"
#include "scenarios/diagnosing/weighing.h"
#include "sim/base/json_document.h"
#include "sim/report/result.h"

namespace rehearse {

// Where the time of a step goes: what a profile would show.
struct StepParts {
  Seconds compute;
  Seconds exposed;
  Seconds idle;
};

struct SuspectedStepCause : WeighedStrength {
  const StepCause* cause = nullptr;
  // The other of two at once; null: it is alone.
  const StepCause* also = nullptr;
  double also_strength = 0;
  double probability = 0;
  double explained = 0;                 // share of the gap, 0 to 1
  std::optional<StepParts> parts = {};  // of the first measured step; nothing if it is not shown
};

struct StepFinding {
  std::vector<SuspectedStepCause> causes;  // the likeliest first
  double probability = 0;
};

struct StepDiagnosis {
  std::string scenario;
  std::vector<MeasuredStep> measured;
  std::vector<double> log_measured;  // times
  std::vector<double> log_expected;
  StepParts expected;  // of the first measured step
  Seconds floor;       // of parts (scenarios/diagnosing/measured_step.h)
  double model_error = 0;
  std::string model_error_of;  // "23 published steps (a100-40g, ...)", or ""
  double chance = 1;
  double nothing_wrong = 1;
  double something_else = 0;
  bool is_faster = false;
  bool is_something_wrong = false;
  std::vector<StepFinding> findings;
};

// `ranks_differ` says whether one rank was seen to compute longer than the others beside what is
// expected of each, if a timeline tells. Throws Error if the scenario cannot be played as it is.
StepDiagnosis DiagnoseStep(const JsonDocument& scenario, const std::vector<MeasuredStep>& measured,
                           std::optional<bool> ranks_differ = std::nullopt);

std::string ToText(const StepDiagnosis& diagnosis, size_t most_findings);
nlohmann::ordered_json ToJson(const StepDiagnosis& diagnosis);

}  // namespace rehearse
