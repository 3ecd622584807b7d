// From measured times to the costs of topology/devices/measured_costs.h.
//
// Kernels: for each (kernel, mode, dtype) the median time of every distinct piece of work, and
// coefficients c ≥ 0 of the terms that minimise
//   Σ |Σ_j c_j·term_j − t| / t
// over these (least squares with weights 1/(t·max(|residual|, t/200)), repeated; coordinate
// descent, so that no term ever makes a time shorter). The cost of a machine is a sum of what it
// does, so negative terms would be nonsense outside the points.
// Collectives: the median time of a step at each size is a knot; knots are as dense as the sizes
// measured. All errors are held out: every fourth piece of work (every second size) is left out,
// predicted from the others, and compared; then all are used. Deterministic.
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

struct KernelFit {
  KernelCosts costs;
  ErrorSummary held_out;  // none where there are fewer than eight points
};
// One for each (kernel, mode, dtype), in order of first appearance; pieces of work that are
// equal are merged.
std::vector<KernelFit> FitKernels(const std::vector<KernelSamples>& samples);

// The coefficients alone: of terms[i]·c ≈ times[i], relative.
std::vector<double> FitNonNegative(const std::vector<std::vector<double>>& terms,
                                   const std::vector<double>& times);

struct CollectiveSamples {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t ranks = 2;
  Bytes bytes;                    // of the collective, as it was computed
  std::vector<Seconds> accepted;  // at least one
};

// t = α·S + β·S·bytes: AutoDDL's, by least squares on the samples as they are.
struct StraightLine {
  Seconds alpha;         // a step
  double beta = 0;       // seconds a byte
  double r_squared = 0;  // of the same samples
};

struct CollectiveFit {
  CollectiveCosts costs;
  ErrorSummary held_out;  // of the piecewise-linear cost
  StraightLine line;
  ErrorSummary line_errors;  // of the straight line, on the same held-out sizes
};
std::vector<CollectiveFit> FitCollectives(const std::vector<CollectiveSamples>& samples);

}  // namespace rehearse
