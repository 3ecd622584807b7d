// Two numbers of a machine from measured collectives: the efficiency of the links that bind, and what every collective
// takes besides its steps (DESIGN section 7: judge by held-out relative error).
//
// Given samples (s_i, t_i) and our prediction T_i(e) with the binding links at efficiency e and no overhead:
//   minimise over e, o ≥ 0   the mean over tables of  mean_i min(1, |T_i(e) + o − t_i| / t_i)
// over a grid of e (a twentieth, then a hundredth and a five-hundredth around the best); o is for each e the
// median of t_i − T_i(e) with weights 1/t_i, which is the best there is. Every other sample of a table is fitted on, the others judge.
// Nothing else is fitted. Deterministic.
#pragma once

#include <vector>

#include "collectives/trial.h"
#include "real/nccl_table.h"
#include "topology/calibration.h"
#include "topology/cluster.h"

namespace rehearse {

struct FitTable {
  Trial trial;
  std::vector<NcclRow> rows;  // at least one
};

// Relative errors of predictions, |predicted − measured| / measured; quantiles by nearest rank.
struct ErrorSummary {
  size_t samples = 0;
  double median = 0;
  double ninetieth = 0;
  double largest = 0;
};
ErrorSummary SummarizeErrors(std::vector<double> errors);

// Of each row, on this cluster.
std::vector<Seconds> Predict(const Cluster& cluster, const Trial& trial,
                             const std::vector<NcclRow>& rows);

// `fit` of the result tells the samples and the held-out errors; the cluster is left with the fitted figures. CHECKs
// that there is a table.
Calibration FitCalibration(Cluster& cluster, const std::vector<FitTable>& tables);

}  // namespace rehearse
