// What somebody measured of a training run, in words: "840 tokens/s/gpu", "2.3 s", "45 % MFU",
// "410 TFLOP/s/gpu"; of a profile, as means over ranks, "compute 0.8 s", "exposed 1.6 s"
// (communication beside which no kernel runs) and "idle 0 s"; of a run that differs from the
// scenario, with what differs: "1.9 s with cluster.nodes=8, training.batch=64".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/result.h"

namespace rehearse {

enum class StepMeasure : uint8_t {
  kStep,                 // seconds
  kTokens,               // per second, of all devices
  kTokensPerDevice,      // per second
  kUtilization,          // of the model's operations, a share of the peak
  kOperationsPerDevice,  // of the model, per second
  kCompute,              // seconds of a step, as the next
  kExposed,
  kIdle,
  kNotComputing,  // the last two, where a timeline does not tell them apart
};

struct MeasuredStep {
  std::string text;
  StepMeasure measure = StepMeasure::kStep;
  double value = 0;
  std::vector<std::string> changes = {};  // as --set takes them
};

// Throws Error, saying what is read, for anything else, and for what cannot be.
MeasuredStep ParseMeasuredStep(std::string_view text);

// Whether it is a part of a step, which may be nothing.
bool IsPart(StepMeasure measure);

// The logarithm of what was measured, as a time: of a rate, that of its inverse; of a part, that of
// the part and `floor` together, so that what is nothing has one.
double LogTimeOf(const MeasuredStep& measured, Seconds floor);
// The same of what is predicted. Throws Error if the result has no such number.
double LogTimeOf(const MeasuredStep& measured, const Result& result, Seconds floor);

// "1.9 s", "840 tokens/s/gpu": a logarithm of that kind as it was measured.
std::string WordsOf(const MeasuredStep& measured, double log_time, Seconds floor);

}  // namespace rehearse
