// Plays a study: every point's scenario is simulated, points in parallel, finished ones not again.
//
// Calibrations come first: bisection finds the value between their limits at which their point's
// metric is as published (the metric must rise or fall throughout), rounded to 4 digits so that it
// can be written down and set by hand.
//
// Points are evaluated by scenarios/evaluating/engine.h, which keeps finished ones in a folder
// (scenarios/evaluating/point_folder.h) and elsewhere, and takes them from there. What a sweep
// returns does not depend on the number of threads; if the machine has no room for that many, there
// are fewer.
//
// A sweep may be stopped: what is done by then counts, and is kept in the folder; points that were
// being played, and all later ones, are left out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"
#include "scenarios/evaluating/shard.h"
#include "scenarios/sweeping/study.h"
#include "sim/base/progress.h"

namespace rehearse {

struct SweepOptions {
  std::string folder;                    // "" keeps nothing
  Leases* leases = nullptr;              // only the points that it gets
  Shard shard = {};                      // only these points; calibrations are done for each
  unsigned threads = 0;                  // 0: as many as the machine has
  bool again = false;                    // simulate finished points too, and replace what is kept
  std::vector<PointStore*> stores = {};  // in which finished points are also kept
  std::string build = ThisBuild();
  ProgressObserver* observer = &NoObserver();  // of the points and the best metric so far
  // Called under a lock when a point in the folder has to be simulated again.
  std::function<void(const std::string& message)> warn = [](const std::string&) {};
  std::function<bool()> is_stopped = [] { return false; };  // asked now and then, by any thread
};

struct PointOutcome {
  nlohmann::json result;  // rehearse.result.v1; null when there is an error
  std::string error;
  std::string scenario_hash;
  bool kept = false;      // not simulated
  bool left_out = false;  // in another shard, or the sweep was stopped before it; `error` says so
};

struct Sweep {
  std::vector<PointOutcome> points;               // as in the study
  std::vector<std::optional<double>> calibrated;  // by group
  size_t left_out = 0;                            // points
  size_t interrupted = 0;                         // of these, because of a stop
  Shard shard;
};

// Throws Error before the first point if a point lacks the axis of the metric, if all points lack
// that of a column, or if something other than a file is in a point's place; if a calibration's
// limits do not enclose its figure; and if a point fails that may not (after all others are done).
// Throws Stopped when it is stopped before a point is done.
Sweep PlayStudy(const Study& study, const SweepOptions& options);

}  // namespace rehearse
