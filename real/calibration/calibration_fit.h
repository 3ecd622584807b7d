// Two numbers of a machine from measured collectives: the efficiency of the links that bind, and
// the time to launch a collective. A fit is judged by its relative error on samples that it has not
// seen: even with R² = 0.98, a straight line over many sizes can be wrong severalfold at some.
//
// Given samples (s_i, t_i), with the binding links at efficiency e and launching at o the
// prediction is
//   T_i(e, o) = max(o·(1 + κ·c_i), l_i) + R_i(e)
// with c_i the channels of NCCL, l_i its latency (collectives/lowering/tuning.h) and R_i the time
// to move the bytes.
//   minimise over e, o ≥ 0   the mean over tables of  mean_i min(1, |T_i(e, o) − t_i| / t_i)
// over a grid of e (steps of a twentieth, then a hundredth and a five-hundredth around the best)
// and, for each e, all o that match some sample. κ is not fitted: it is 0, or kChannelLaunchShare
// if one thread of a process launches several GPUs one after the other (nccl-tests -g), which shows
// in the times; the better of the two is taken. Every other sample of a table is used for the fit,
// beginning with the smallest, and also the largest if there are few; the others judge it.
// Deterministic.
//
// A number is fitted only if the samples determine it: if it were a quarter more or less, some T_i
// would change by a twentieth, whatever the other number then is. If not, it stays as the cluster
// has it, and the other is fitted alone. A fit whose mean error over all samples is larger than
// without it is rejected: then nothing is changed. What was not fitted or rejected, and why, is in
// the calibration's `fit`.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "collectives/lowering/trial.h"
#include "real/calibration/nccl_table.h"
#include "topology/cluster/cluster.h"
#include "topology/files/calibration.h"

namespace rehearse {

// What a channel adds to launching a collective, as a share of a launch without channels. On 8
// A100s driven by one thread (superbenchmark 700d6501, nccl-tests -g 8), all-reduce, all-gather,
// reduce-scatter, broadcast and reduce all rise from 35 us with one channel (up to 32 KiB) by 1.6
// us per channel to 74 us with 24 (1 MiB): 0.048. All-to-all takes 87 us, as 32 channels would.
// Another such machine (ml-engineering 744d01e1) has 0.058.
inline constexpr double kChannelLaunchShare = 0.05;

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
nlohmann::ordered_json ToJson(const ErrorSummary& errors);

// The predicted time of each row on this cluster.
std::vector<Seconds> Predict(const Cluster& cluster, const Trial& trial,
                             const std::vector<NcclRow>& rows);

// `fit` of the result has the samples, the errors with and without the fit and on held-out samples,
// and under "remarks" what was not fitted. CHECKs that there is a table.
Calibration FitCalibration(const Cluster& cluster, const std::vector<FitTable>& tables);

}  // namespace rehearse
