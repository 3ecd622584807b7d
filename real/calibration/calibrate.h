// Makes a calibration of a CPU or of GPUs from what the ranks on them learned
// (real/calibration/learning.h), with what speaks against it: what the machine did meanwhile
// ("noise"), a range of each constant, and whether products that were held out fit. One of which
// that makes doubt says that it is not representative, and why.
//
// Kernels are fitted on worlds whose ranks had a core each; if more ranks share the cores, the
// simulator's model of shared cores says what that costs. Collectives are fitted for each world:
// the dense ladder of MakeCollectiveProbe gives the shape of a step's cost, and training steps
// correct it in place (T = a·S + b·ladder, a, b ≥ 0, if there are enough of them), since ranks
// that have just computed arrive asleep and with cold caches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "real/backends/host.h"
#include "real/backends/host_activity.h"
#include "real/calibration/interference.h"
#include "real/calibration/learning.h"
#include "topology/files/calibration.h"

namespace rehearse {

// What one world learned: from the ladder, and from everything else.
struct LearnedWorld {
  Learned ladder;
  Learned steps;
};

// What the machine did while it was measured.
struct CalibrationNoise {
  HostActivity activity;
  BytesPerSecond copies_before;  // how fast one thread copies memory
  BytesPerSecond copies_after;
};

struct CalibrationFacts {
  std::string tool;  // "rehearse 0.1.0"
  std::string commit;
  std::string date;    // "2026-11-20T10:00:00Z"
  double seconds = 0;  // that it took to measure
  std::optional<CalibrationNoise> noise = std::nullopt;
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

// Why its times are not those of the machine left alone; empty if nothing speaks against them:
// products that were held out are off by more than 10 % in the median, so few steps were left alone
// that it was not waited for more, or memory was copied more than 10 % faster or slower before than
// after.
std::vector<std::string> DoubtsOf(const Calibration& calibration);

// Lines for people: what was measured, with its held-out errors, and those of a straight line.
std::string DescribeCalibration(const Calibration& calibration);

}  // namespace rehearse
