// From what ranks learned (real/calibration/learning.h) to a calibration of the CPU or the GPUs
// that they ran on.
//
// Kernels are fitted on worlds whose ranks had a core each; where more ranks share the cores, the
// simulator's model of shared cores says what that costs. Collectives are fitted for each world:
// the dense ladder of MakeCollectiveProbe gives the shape of a step's cost, steps of training
// correct it in place (T = a·S + b·ladder, a, b ≥ 0, where there are enough of them), since ranks
// that computed before arrive with cold caches and asleep.
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
  double seconds = 0;  // that it took
};

// What was measured of GPUs besides.
struct GpuFacts {
  nlohmann::ordered_json record = nlohmann::ordered_json::object();  // driver, libraries, device
  std::string not_representative;     // why; empty where times are what they seem
  std::vector<std::string> left_out;  // what did not fit on the device
  Seconds launch;                     // a kernel's
  nlohmann::ordered_json overheads;   // launches, events, copies
  uint32_t multiprocessors = 1;
  std::vector<EncounterSamples> encounters;
};

// Throws Error when no step of a kind was left alone: nothing is learned from disturbed ones.
// Without encounters, nothing is said of interference.
Calibration MakeCalibration(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
                            const std::vector<EncounterSamples>& encounters = {});
// Ranks of GPUs share no cores, and nothing disturbs a step.
Calibration MakeGpuCalibration(const std::vector<LearnedWorld>& worlds,
                               const CalibrationFacts& facts, const GpuFacts& gpu);

// Lines for people: what was measured, with which held-out errors; what a straight line would lose.
std::string DescribeCalibration(const Calibration& calibration);

}  // namespace rehearse
