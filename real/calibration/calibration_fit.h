// Two numbers of a machine from measured collectives: the efficiency of the links that bind, and
// what launching a collective takes. A fit is judged by its relative error on samples that it has
// not seen: a straight line over many sizes is off severalfold at some with R² = 0.98.
//
// Given samples (s_i, t_i), with the binding links at efficiency e and launching at o the
// prediction is
//   T_i(e, o) = max(o·(1 + κ·c_i), l_i) + R_i(e)
// with c_i the channels of NCCL, l_i its latency (collectives/lowering/tuning.h) and R_i what
// moving the bytes takes.
//   minimise over e, o ≥ 0   the mean over tables of  mean_i min(1, |T_i(e, o) − t_i| / t_i)
// over a grid of e (a twentieth, then a hundredth and a five-hundredth around the best) and, for
// each e, all o that meet some sample. κ is not fitted: it is 0, or kChannelLaunchShare where one
// thread of a process launches several GPUs one after the other (nccl-tests -g), which shows; the
// better of the two is taken. Every other sample of a table is fitted on, from the smallest on, and
// where they are few the largest as well; the others judge. Deterministic.
//
// A number is only fitted where the samples tell it: if it were a quarter more or less, some T_i
// would change by a twentieth, whatever the other number is then. One that they do not tell stays
// as the cluster has it, and the other is fitted alone. A fit whose mean error over all samples is
// larger than without it is refused: then nothing is changed. What was not fitted or refused, and
// why, stands in the calibration's `fit`.
#pragma once

#include <vector>

#include "collectives/lowering/trial.h"
#include "real/calibration/nccl_table.h"
#include "topology/cluster/cluster.h"
#include "topology/files/calibration.h"

namespace rehearse {

// What a channel adds to launching a collective, in launches without channels. On 8 A100 driven by
// one thread (superbenchmark 700d6501, nccl-tests -g 8) all-reduce, all-gather, reduce-scatter,
// broadcast and reduce rise alike from 35 us with one channel (up to 32 KiB) by 1.6 us a channel to
// 74 us with 24 (1 MiB): 0.048. All-to-all takes 87 us, which is that of 32 channels. Another such
// machine (ml-engineering 744d01e1) has 0.058.
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

// Of each row, on this cluster.
std::vector<Seconds> Predict(const Cluster& cluster, const Trial& trial,
                             const std::vector<NcclRow>& rows);

// `fit` of the result tells the samples, the errors with and without it and on held-out ones, and
// under "remarks" what was not fitted. CHECKs that there is a table.
Calibration FitCalibration(const Cluster& cluster, const std::vector<FitTable>& tables);

}  // namespace rehearse
