// Playing a study: every point's scenario is simulated, points in parallel, finished ones not
// again.
//
// Calibrations come first: the value between their limits with which their point's metric is as
// published, by bisection (the metric must rise or fall throughout), rounded to 4 digits so that it
// can be written down and set by hand.
//
// With a folder, each finished point is a file "NAME.json" there (schema rehearse.point.v1: study,
// point, scenario_hash, calibrated, result or error), written when the point is done; a later sweep
// reads it instead of simulating if the hash of the scenario, of the cluster file that it names and
// of the version of Rehearse is the same. What one sweep returns does not depend on the number of
// threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/sweeping/study.h"

namespace rehearse {

struct SweepOptions {
  std::string folder;    // "" keeps nothing
  unsigned threads = 0;  // 0: as many as the machine has
  bool again = false;    // simulate finished points too
  std::string version;   // of Rehearse
  // Called under a lock whenever a point is done.
  std::function<void(size_t done, size_t all)> progress = [](size_t, size_t) {};
};

struct PointOutcome {
  nlohmann::json result;  // rehearse.result.v1; null when there is an error
  std::string error;
  std::string scenario_hash;
  bool kept = false;  // read from the folder
};

struct Sweep {
  std::vector<PointOutcome> points;               // as in the study
  std::vector<std::optional<double>> calibrated;  // by group
};

// Throws Error when a calibration's limits do not enclose its figure, when a point that may not
// fail does (after all others are done), or when a result has no number for the metric.
Sweep PlayStudy(const Study& study, const SweepOptions& options);

}  // namespace rehearse
