// How long to train between two checkpoints: two formulas, and what simulated runs say.
//
//   Young (1974)  sqrt(2·C·M)
//   Daly (2006)   sqrt(2·C·M)·(1 + sqrt(C/(2M))/3 + C/(2M)/9) − C, or M where C is 2M or more
//
// with the C seconds that training stands still for a checkpoint, and a mean time of M between two
// failures. J. W. Young: A first order approximation to the optimum checkpoint interval; J. T.
// Daly: A higher order estimate of the optimum checkpoint interval for restart dumps.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/campaign/long_run.h"
#include "sim/base/progress.h"

namespace rehearse {

double YoungInterval(double stall, double between_failures);
double DalyInterval(double stall, double between_failures);

struct TriedInterval {
  double seconds = 0;
  double effective = 0;  // training over all the time, of all seeds together; 0: does not get ahead
};

struct IntervalChoice {
  double best = 0;                   // seconds
  std::vector<TriedInterval> tried;  // rising, around Young's
};

// In whole steps. Seeds are the same for all intervals, so that differences are those of the
// intervals; the best is where a parabola through the best three has its top. Without failures a
// checkpoint at the end is best.
IntervalChoice ChooseInterval(const RunModel& model, double step, uint64_t first_seed,
                              uint32_t seeds, ProgressObserver& observer = NoObserver());
// The share of all the time that is training, with this interval.
double EffectiveShare(RunModel model, double interval, uint64_t first_seed, uint32_t seeds);

// The nearest number of whole steps, at least one.
double WholeSteps(double seconds, double step);

}  // namespace rehearse
