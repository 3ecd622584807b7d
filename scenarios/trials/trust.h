// How far predictions can be trusted on this machine: steps that the calibration has not seen are
// predicted, then run.
//
// There are N random steps (scenarios/trials/random_step.h), in groups of one network with all
// strategies. The measured time of a step is the median of its undisturbed repeats
// (real/calibration/probe.h); a step without any is listed but not judged. Before and after each,
// products say how fast the machine is beside when it was calibrated
// (real/calibration/machine_pace.h): errors of steps during which it was as fast stand apart, since
// the model has no part in the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "real/calibration/calibration_fit.h"
#include "sim/base/progress.h"
#include "sim/base/quantity.h"
#include "sim/report/data_table.h"
#include "sim/schedule/schedule.h"
#include "topology/files/calibration.h"

namespace rehearse {

struct TrustOptions {
  uint32_t ranks = 2;
  uint32_t steps = 42;
  uint64_t seed = 1;
  uint32_t kept = 15;
  Seconds patience = Seconds(10);              // for each step
  ProgressObserver* observer = &NoObserver();  // of the steps and their errors so far
  std::function<bool()> is_stopped = nullptr;  // asked now and then
};

struct TrustRow {
  std::string strategy;
  std::string name;
  uint32_t network = 0;  // rows of one network are ranked
  Seconds predicted;
  Seconds tenth;
  Seconds measured;  // median
  Seconds ninetieth;
  uint32_t kept = 0;
  uint32_t disturbed = 0;
  std::vector<std::string> notes;  // of the prediction
  // How many times as long as when calibrated products took, before the step and after it. Nothing
  // if that is unknown.
  std::optional<double> pace_before = {};
  std::optional<double> pace_after = {};

  bool IsJudged() const { return kept > 0; }
  double Error() const { return (predicted - measured) / measured; }
  // As fast as when it was calibrated, within 5 %, as far as is known.
  bool IsAtPace() const;
};

struct TrustReport {
  uint32_t ranks = 2;
  uint64_t seed = 1;
  std::string calibration_date;
  nlohmann::ordered_json host;
  nlohmann::ordered_json environment;  // when it began
  uint32_t wanted = 0;                 // steps; more than there are rows if it was stopped
  std::vector<TrustRow> rows;
};

// What is predicted for the blocking step of a schedule on local-cpu with a calibration.
struct Prediction {
  Seconds step;
  std::vector<std::string> notes;
};
Prediction PredictStep(const Schedule& schedule, const Calibration& calibration);

// Runs on threads of this process. Throws Error if the calibration is of another machine, and
// Stopped if it is stopped before a step is measured; if stopped later, it has fewer rows.
TrustReport MeasureTrust(const Calibration& calibration, const TrustOptions& options);

ErrorSummary ErrorsOf(const TrustReport& report, const std::string& strategy = "");
// Of the judged steps during which the machine was as fast as when it was calibrated.
ErrorSummary ErrorsAtPace(const TrustReport& report);
// Kendall's τ (the share of pairs in the same order minus that of pairs in the opposite order) of
// predicted and measured times, for pairs of one network or for all.
double RankCorrelation(const TrustReport& report, bool within_networks);

nlohmann::ordered_json ToJson(const TrustReport& report);
// A row for each step; what was not measured is empty.
DataTable TableOf(const TrustReport& report);
// Writes Markdown, as in real/MEASURED.md.
std::string ToText(const TrustReport& report);

}  // namespace rehearse
