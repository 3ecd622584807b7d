#include "scenarios/diagnosing/cause_curve.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "topology/fabrics/router.h"

namespace rehearse {
namespace {

constexpr double kShows = 0.02;

double DistanceBetween(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

}  // namespace

std::vector<double> SimulateLogTimes(const CollectiveRun& run, const SizesOfTables& sizes) {
  CHECK(sizes.size() == run.trials.size());
  std::vector<double> log_times;
  for (size_t table = 0; table < sizes.size(); ++table) {
    Router router(*run.cluster, run.trials[table].routing);
    for (const Seconds time : TimesOf(run.trials[table], sizes[table], router))
      log_times.push_back(std::log(time.value()));
  }
  return log_times;
}

SeededRun WithTypicalSeed(const CollectiveRun& run, const SizesOfTables& sizes) {
  size_t rows = 0;
  for (const std::vector<Bytes>& of_table : sizes) rows += of_table.size();
  const FabricRouting& routing = run.trials.front().routing;
  if (routing.seed || !Router(*run.cluster, routing).IsHashed())
    return {run, std::vector<double>(rows)};
  std::vector<CollectiveRun> seeded(kRoutingSeeds, run);
  std::vector<std::vector<double>> times(kRoutingSeeds);
  for (uint64_t seed = 0; seed < kRoutingSeeds; ++seed)
    for (Trial& trial : seeded[seed].trials) trial.routing.seed = seed;
  InParallel(kRoutingSeeds, 0,
             [&](size_t seed) { times[seed] = SimulateLogTimes(seeded[seed], sizes); });
  std::vector<double> medians;
  std::vector<double> deviation;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<double> own;
    own.reserve(times.size());
    for (const std::vector<double>& of_seed : times) own.push_back(of_seed[row]);
    std::sort(own.begin(), own.end());
    medians.push_back(own[(own.size() - 1) / 2]);
    double sum = 0;
    for (const double time : own) sum += (time - medians.back()) * (time - medians.back());
    deviation.push_back(std::sqrt(sum / static_cast<double>(own.size())));
  }
  size_t best = 0;
  for (size_t seed = 1; seed < times.size(); ++seed) {
    if (DistanceBetween(times[seed], medians) < DistanceBetween(times[best], medians)) best = seed;
  }
  return {seeded[best], deviation};
}

std::optional<CauseCurve> SimulateCause(const CollectiveCause& cause, const CollectiveRun& run,
                                        const SizesOfTables& sizes,
                                        const std::vector<double>& expected) {
  CauseCurve curve;
  curve.cause = &cause;
  curve.is_graded = cause.is_graded;
  double most = 0;
  for (const double strength : cause.strengths) {
    try {
      const std::optional<CollectiveRun> changed = cause.change(run, strength);
      if (!changed) continue;
      std::vector<double> log_times = SimulateLogTimes(*changed, sizes);
      double difference = 0;
      double slower = 0;
      for (size_t row = 0; row < log_times.size(); ++row) {
        difference = std::max(difference, std::abs(log_times[row] - expected[row]));
        slower += log_times[row] - expected[row];
      }
      // A way in which it may happen, and that nobody would notice or complain of, is none.
      if (!cause.is_graded && (difference < kShows || slower < 0)) continue;
      most = std::max(most, difference);
      curve.strengths.push_back(strength);
      curve.log_times.push_back(std::move(log_times));
    } catch (const Error&) {
      // This machine cannot be changed so: a cut would leave a GPU without a way to the others, or
      // an algorithm cannot do the kind.
    }
  }
  if (most < kShows || (cause.is_graded && curve.strengths.size() < 2)) return std::nullopt;
  return curve;
}

std::vector<CauseCurve> SimulateCauses(const CollectiveRun& run, const SizesOfTables& sizes,
                                       const std::vector<double>& expected) {
  const std::vector<CollectiveCause>& causes = CollectiveCauses();
  std::vector<std::optional<CauseCurve>> each(causes.size());
  InParallel(causes.size(), 0,
             [&](size_t i) { each[i] = SimulateCause(causes[i], run, sizes, expected); });
  std::vector<CauseCurve> curves;
  for (std::optional<CauseCurve>& curve : each)
    if (curve) curves.push_back(std::move(*curve));
  return curves;
}

}  // namespace rehearse
