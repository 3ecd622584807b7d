// Playing a study: every point's scenario is simulated, points in parallel, finished ones not
// again.
//
// Calibrations come first: the value between their limits with which their point's metric is as
// published, by bisection (the metric must rise or fall throughout), rounded to 4 digits so that it
// can be written down and set by hand.
//
// With a folder, each finished point is a file "NAME.json" there (schema rehearse.point.v2: study,
// point, scenario_hash, calibrated, result or error, checksum), written when the point is done; a
// later sweep reads it instead of simulating if the hash is the same. The hash is of the scenario,
// of every file that was read for it (clusters, calibrations, schedules) and of the build of
// Rehearse. A file whose checksum does not fit is said to be damaged, and its point is simulated
// again. What one sweep returns does not depend on the number of threads; where the machine has no
// room for so many, there are fewer.
//
// A sweep may be stopped: what is done then counts, and is kept in the folder; points that were
// being played, and all later ones, are left out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/sweeping/study.h"
#include "sim/base/progress.h"

namespace rehearse {

std::string ThisBuild();  // version and commit

struct SweepOptions {
  std::string folder;    // "" keeps nothing
  unsigned threads = 0;  // 0: as many as the machine has
  bool again = false;    // simulate finished points too
  std::string build = ThisBuild();
  ProgressObserver* observer = &NoObserver();  // of the points, and the best metric so far
  // Called under a lock, when a point is to be simulated again.
  std::function<void(const std::string& message)> warn = [](const std::string&) {};
  std::function<bool()> is_stopped = [] { return false; };  // asked now and then, by any thread
};

struct PointOutcome {
  nlohmann::json result;  // rehearse.result.v1; null when there is an error
  std::string error;
  std::string scenario_hash;
  bool kept = false;      // read from the folder
  bool left_out = false;  // the sweep was stopped before; `error` says so
};

struct Sweep {
  std::vector<PointOutcome> points;               // as in the study
  std::vector<std::optional<double>> calibrated;  // by group
  size_t left_out = 0;                            // points
};

// Throws Error before the first point when the metric, or a column, is of an axis that a point, or
// all of them, do not have, and when something else than a file is in a point's place; when a
// calibration's limits do not enclose its figure; and when a point that may not fail does (after
// all others are done). Throws Stopped when it is stopped before a point is done.
Sweep PlayStudy(const Study& study, const SweepOptions& options);

}  // namespace rehearse
