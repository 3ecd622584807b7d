#include "real/calibration/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Where the cost per byte may change: beyond a core's second-level cache, and beyond its share of
// the third.
constexpr Bytes kCacheKnots[] = {Bytes(1 << 20), Bytes(16 << 20)};
constexpr size_t kHeldOut = 4;  // every fourth piece of work
constexpr size_t kFewestForJudging = 8;
constexpr int kReweightings = 20;
constexpr int kSweeps = 200;
constexpr double kSmallestResidual = 1.0 / 200;

// Minimises Σ w_i (Σ_j c_j a_ij − t_i)² over c ≥ 0, one coefficient after the other.
void Descend(const std::vector<std::vector<double>>& terms, const std::vector<double>& times,
             const std::vector<double>& weights, std::vector<double>* coefficients) {
  const size_t count = coefficients->size();
  std::vector<double> products(count * count, 0);
  std::vector<double> right(count, 0);
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = 0; j < count; ++j) {
      right[j] += weights[i] * terms[i][j] * times[i];
      for (size_t k = 0; k < count; ++k)
        products[j * count + k] += weights[i] * terms[i][j] * terms[i][k];
    }
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t j = 0; j < count; ++j) {
      if (products[j * count + j] <= 0) continue;
      double rest = right[j];
      for (size_t k = 0; k < count; ++k) {
        if (k != j) rest -= products[j * count + k] * (*coefficients)[k];
      }
      (*coefficients)[j] = std::max(0.0, rest / products[j * count + j]);
    }
  }
}

using CostKey = std::tuple<Kernel, GemmMode, DType>;
using WorkKey = std::tuple<uint64_t, uint64_t, uint64_t, double, double>;

WorkKey KeyOf(Kernel kernel, const KernelWork& work) {
  if (kernel == Kernel::kGemm) return {work.gemm.m, work.gemm.n, work.gemm.k, 0, 0};
  return {0, 0, 0, work.bytes.value(), work.flops.value()};
}

KernelCosts FitPoints(KernelCosts costs) {
  std::vector<std::vector<double>> terms;
  std::vector<double> times;
  for (const KernelPoint& point : costs.points) {
    terms.push_back(TermsOf(costs, point.work));
    times.push_back(point.time.value());
  }
  costs.coefficients = FitNonNegative(terms, times);
  return costs;
}

Compute ComputeOf(const KernelCosts& costs, const KernelPoint& point) {
  Compute compute;
  compute.kernel = costs.kernel;
  compute.dtype = costs.dtype;
  compute.gemm = point.work.gemm;
  compute.gemm.mode = costs.mode;
  compute.bytes = point.work.bytes;
  compute.flops = point.work.flops;
  return compute;
}

ErrorSummary JudgePoints(const KernelCosts& all) {
  if (all.points.size() < kFewestForJudging) return {};
  KernelCosts known = all;
  known.points.clear();
  std::vector<KernelPoint> held_out;
  for (size_t i = 0; i < all.points.size(); ++i)
    (i % kHeldOut == kHeldOut - 1 ? held_out : known.points).push_back(all.points[i]);
  MeasuredKernels measured;
  measured.kernels = {FitPoints(known)};
  std::vector<double> errors;
  for (const KernelPoint& point : held_out) {
    const Seconds predicted = TimeOf(measured, ComputeOf(all, point))->time;
    errors.push_back(std::abs((predicted - point.time) / point.time));
  }
  return SummarizeErrors(errors);
}

std::vector<ValueRange> RangesOf(const KernelCosts& all) {
  std::vector<ValueRange> ranges;
  if (all.points.size() < kFewestForJudging) return ranges;
  for (const double coefficient : all.coefficients) ranges.push_back({coefficient, coefficient});
  for (size_t out = 0; out < kHeldOut; ++out) {
    KernelCosts part = all;
    part.points.clear();
    for (size_t i = 0; i < all.points.size(); ++i)
      if (i % kHeldOut != out) part.points.push_back(all.points[i]);
    part = FitPoints(std::move(part));
    for (size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].least = std::min(ranges[i].least, part.coefficients[i]);
      ranges[i].greatest = std::max(ranges[i].greatest, part.coefficients[i]);
    }
  }
  return ranges;
}

// ---- Collectives --------------------------------------------------------------------------------

CostCurve CurveThrough(const std::map<Bytes, std::vector<Seconds>>& steps) {
  CostCurve curve;
  for (const auto& [bytes, times] : steps)
    curve.knots.push_back({bytes, QuantilesOf(times).median});
  return curve;
}

StraightLine FitLine(const std::map<Bytes, std::vector<Seconds>>& steps) {
  double n = 0;
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  double sum_yy = 0;
  for (const auto& [bytes, times] : steps) {
    for (const Seconds time : times) {
      const double x = bytes.value();
      const double y = time.value();
      n += 1;
      sum_x += x;
      sum_y += y;
      sum_xx += x * x;
      sum_xy += x * y;
      sum_yy += y * y;
    }
  }
  const double x_spread = n * sum_xx - sum_x * sum_x;
  const double y_spread = n * sum_yy - sum_y * sum_y;
  const double both = n * sum_xy - sum_x * sum_y;
  StraightLine line;
  line.beta = x_spread > 0 ? both / x_spread : 0;
  line.alpha = Seconds((sum_y - line.beta * sum_x) / n);
  line.r_squared = x_spread > 0 && y_spread > 0 ? both * both / (x_spread * y_spread) : 0;
  return line;
}

CollectiveFit FitSteps(CollectiveKind kind, uint32_t ranks,
                       const std::map<Bytes, std::vector<Seconds>>& steps) {
  CollectiveFit fit;
  fit.costs = {kind, ranks, CurveThrough(steps)};
  for (const auto& [bytes, times] : steps) fit.ranges.push_back(QuantilesOf(times));
  fit.line = FitLine(steps);
  // The ends are not held out: nothing is claimed about sizes beyond them.
  std::map<Bytes, std::vector<Seconds>> known;
  std::map<Bytes, std::vector<Seconds>> held_out;
  size_t position = 0;
  for (const auto& [bytes, times] : steps) {
    const bool is_end = position == 0 || position + 1 == steps.size();
    (position % 2 == 1 && !is_end ? held_out : known).emplace(bytes, times);
    ++position;
  }
  const CostCurve curve = CurveThrough(known);
  const StraightLine line = FitLine(known);
  std::vector<double> errors;
  std::vector<double> line_errors;
  for (const auto& [bytes, times] : held_out) {
    const Seconds measured = QuantilesOf(times).median;
    errors.push_back(std::abs((curve.At(bytes) - measured) / measured));
    const Seconds straight = line.alpha + Seconds(line.beta * bytes.value());
    line_errors.push_back(std::abs((straight - measured) / measured));
  }
  fit.held_out = SummarizeErrors(errors);
  fit.line_errors = SummarizeErrors(line_errors);
  return fit;
}

}  // namespace

Quantiles QuantilesOf(std::vector<Seconds> samples) {
  CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(samples.size())));
    return samples[std::max<size_t>(rank, 1) - 1];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

std::vector<double> FitNonNegative(const std::vector<std::vector<double>>& terms,
                                   const std::vector<double>& times) {
  CHECK(!terms.empty());
  CHECK_EQ(terms.size(), times.size());
  // Terms are scaled to the same size, so that descent treats them alike.
  const size_t count = terms.front().size();
  std::vector<double> scale(count, 0);
  for (const auto& row : terms) {
    for (size_t j = 0; j < count; ++j) scale[j] = std::max(scale[j], row[j]);
  }
  std::vector<std::vector<double>> scaled = terms;
  for (auto& row : scaled) {
    for (size_t j = 0; j < count; ++j) row[j] = scale[j] > 0 ? row[j] / scale[j] : 0;
  }
  std::vector<double> coefficients(count, 0);
  std::vector<double> weights(times.size());
  for (int round = 0; round < kReweightings; ++round) {
    for (size_t i = 0; i < times.size(); ++i) {
      double fit = 0;
      for (size_t j = 0; j < count; ++j) fit += coefficients[j] * scaled[i][j];
      const double residual = round == 0 ? times[i] : std::abs(fit - times[i]);
      weights[i] = 1 / (times[i] * std::max(residual, kSmallestResidual * times[i]));
    }
    Descend(scaled, times, weights, &coefficients);
  }
  for (size_t j = 0; j < count; ++j)
    coefficients[j] = scale[j] > 0 ? coefficients[j] / scale[j] : 0;
  return coefficients;
}

std::vector<KernelFit> FitKernels(const std::vector<KernelSamples>& samples) {
  std::vector<CostKey> order;
  std::map<CostKey, std::map<WorkKey, std::pair<KernelWork, std::vector<Seconds>>>> times;
  for (const KernelSamples& sample : samples) {
    const CostKey key{sample.kernel, sample.kernel == Kernel::kGemm ? sample.mode : GemmMode::kNN,
                      sample.dtype};
    auto& works = times[key];
    if (works.empty()) order.push_back(key);
    auto& [work, own] = works[KeyOf(sample.kernel, sample.work)];
    work = sample.work;
    own.insert(own.end(), sample.accepted.begin(), sample.accepted.end());
  }
  std::vector<KernelFit> fits;
  for (const CostKey& key : order) {
    KernelCosts costs;
    std::tie(costs.kernel, costs.mode, costs.dtype) = key;
    if (costs.kernel != Kernel::kGemm)
      costs.knots.assign(std::begin(kCacheKnots), std::end(kCacheKnots));
    for (const auto& [work_key, measured] : times[key])
      costs.points.push_back({measured.first, QuantilesOf(measured.second).median});
    KernelCosts fitted = FitPoints(costs);
    std::vector<ValueRange> ranges = RangesOf(fitted);
    fits.push_back({std::move(fitted), JudgePoints(costs), std::move(ranges)});
  }
  return fits;
}

std::vector<CollectiveFit> FitCollectives(const std::vector<CollectiveSamples>& samples) {
  using Key = std::pair<CollectiveKind, uint32_t>;
  std::vector<Key> order;
  std::map<Key, std::map<Bytes, std::vector<Seconds>>> steps;
  for (const CollectiveSamples& sample : samples) {
    const Key key{sample.kind, sample.ranks};
    auto& own = steps[key];
    if (own.empty()) order.push_back(key);
    auto& times = own[sample.bytes / sample.ranks];
    for (const Seconds time : sample.accepted)
      times.push_back(time / MeasuredSteps(sample.kind, sample.ranks));
  }
  std::vector<CollectiveFit> fits;
  for (const Key& key : order) fits.push_back(FitSteps(key.first, key.second, steps[key]));
  return fits;
}

}  // namespace rehearse
