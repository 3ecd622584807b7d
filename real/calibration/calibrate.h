// Makes a calibration of a CPU or of GPUs from what the ranks on them learned
// (real/calibration/learning.h).
//
// Kernels are fitted on worlds whose ranks had a core each; if more ranks share the cores, the
// simulator's model of shared cores says what that costs. Collectives are fitted for each world:
// the dense ladder of MakeCollectiveProbe gives the shape of a step's cost, and training steps
// correct it in place (T = a·S + b·ladder, a, b ≥ 0, if there are enough of them), since ranks
// that have just computed arrive asleep and with cold caches.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "real/backends/host.h"
#include "real/calibration/interference.h"
#include "real/calibration/learning.h"
#include "topology/files/calibration.h"

namespace rehearse {

// What one world learned: from the ladder, and from everything else.
struct LearnedWorld {
  Learned ladder;
  Learned steps;
};

struct CalibrationFacts {
  std::string tool;  // "rehearse 0.1.0"
  std::string commit;
  std::string date;    // "2026-11-20T10:00:00Z"
  double seconds = 0;  // that it took to measure
};

// What else was measured of GPUs.
struct GpuFacts {
  nlohmann::ordered_json record = nlohmann::ordered_json::object();  // driver, libraries, device
  std::string not_representative;     // why; empty if times are representative
  std::vector<std::string> left_out;  // what did not fit on the device
  Seconds launch;                     // a kernel's
  nlohmann::ordered_json overheads;   // launches, events, copies
  uint32_t multiprocessors = 1;
  std::vector<EncounterSamples> encounters;
};

// Throws Error if no step of a kind was undisturbed: nothing is learned from disturbed ones.
// Without encounters, there is no slowdown.
Calibration MakeCalibration(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
                            const std::vector<EncounterSamples>& encounters = {});
// Ranks of GPUs share no cores, and nothing disturbs a step.
Calibration MakeGpuCalibration(const std::vector<LearnedWorld>& worlds,
                               const CalibrationFacts& facts, const GpuFacts& gpu);

// Lines for people: what was measured, with its held-out errors, and those of a straight line.
std::string DescribeCalibration(const Calibration& calibration);

}  // namespace rehearse
