// Makes the costs of topology/devices/measured_costs.h from measured times.
//
// Kernels: for each (kernel, mode, dtype) the median time of every distinct piece of work, and
// coefficients c ≥ 0 of the terms that minimise
//   Σ |Σ_j c_j·term_j − t| / t
// over these (least squares with weights 1/(t·max(|residual|, t/200)), repeated; coordinate
// descent, so that no term ever makes a time shorter). Work costs the sum of what a machine does,
// so negative terms would be nonsense outside the measured points.
// Collectives: the median time of a step at each size is a knot; knots are as dense as the measured
// sizes. All errors are held-out errors: every fourth piece of work (every second size) is left
// out, predicted from the others, and compared; then all are used. Deterministic.
#pragma once

#include <string>
#include <vector>

#include "real/calibration/calibration_fit.h"
#include "sim/schedule/schedule.h"
#include "topology/devices/measured_costs.h"

namespace rehearse {

// Order statistics of the accepted samples of one thing; by nearest rank.
struct Quantiles {
  Seconds tenth;
  Seconds median;
  Seconds ninetieth;
};
Quantiles QuantilesOf(std::vector<Seconds> samples);  // at least one

struct KernelSamples {
  Kernel kernel = Kernel::kNone;
  GemmMode mode = GemmMode::kNN;
  DType dtype = DType::kFp32;
  KernelWork work;
  std::vector<Seconds> accepted;  // at least one
};

// The least and the greatest value of something.
struct ValueRange {
  double least = 0;
  double greatest = 0;
};

struct KernelFit {
  KernelCosts costs;
  ErrorSummary held_out;  // none with fewer than eight points
  // Of each coefficient, over the fits that leave out a quarter of the points each, and the fit of
  // all; empty with fewer than eight points.
  std::vector<ValueRange> ranges;
};
// One for each (kernel, mode, dtype), in order of first appearance; pieces of work that are
// equal are merged.
std::vector<KernelFit> FitKernels(const std::vector<KernelSamples>& samples);

// Fits only the coefficients c of terms[i]·c ≈ times[i], by relative errors.
std::vector<double> FitNonNegative(const std::vector<std::vector<double>>& terms,
                                   const std::vector<double>& times);

struct CollectiveSamples {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t ranks = 2;
  Bytes bytes;                    // of the collective, as it was computed
  std::vector<Seconds> accepted;  // at least one
};

// t = α·S + β·S·bytes: AutoDDL's model, by plain least squares on the samples.
struct StraightLine {
  Seconds alpha;         // per step
  double beta = 0;       // seconds per byte
  double r_squared = 0;  // of the same samples
};

struct CollectiveFit {
  CollectiveCosts costs;
  std::vector<Quantiles> ranges;  // of each knot
  ErrorSummary held_out;          // of the piecewise-linear cost
  StraightLine line;
  ErrorSummary line_errors;  // of the straight line, on the same held-out sizes
};
std::vector<CollectiveFit> FitCollectives(const std::vector<CollectiveSamples>& samples);

}  // namespace rehearse
