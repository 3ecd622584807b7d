#include "topology/devices/measured_costs.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "topology/devices/logarithm.h"

namespace rehearse {
namespace {

constexpr double kBeyond =
    1.5;  // up to this many times the largest measured, a size is still inside
constexpr double kLogBeyond = 0.4054651081081644;
constexpr double kTrustInFit = 0.6931471805599453;  // log 2: where the fit itself votes

// Sizes whose logarithms measure how far apart two pieces of work are.
struct Coordinates {
  double logs[3];
  int count;
};
Coordinates CoordinatesOf(Kernel kernel, const KernelWork& work) {
  if (kernel == Kernel::kGemm) return {{Log(work.gemm.m), Log(work.gemm.n), Log(work.gemm.k)}, 3};
  const auto log = [](double size) { return Log(static_cast<uint64_t>(std::max(1.0, size))); };
  return {{log(work.bytes.value()), log(work.flops.value()), 0}, 2};
}

bool IsSame(const KernelWork& x, const KernelWork& y, Kernel kernel) {
  if (kernel == Kernel::kGemm)
    return x.gemm.m == y.gemm.m && x.gemm.n == y.gemm.n && x.gemm.k == y.gemm.k;
  return x.bytes == y.bytes && x.flops == y.flops;
}

double FitOf(const KernelCosts& costs, const KernelWork& work) {
  const std::vector<double> terms = TermsOf(costs, work);
  double sum = 0;
  for (size_t i = 0; i < terms.size() && i < costs.coefficients.size(); ++i)
    sum += costs.coefficients[i] * terms[i];
  return sum;
}

MeasuredTime TimeOf(const KernelCosts& costs, const KernelWork& work) {
  const Coordinates wanted = CoordinatesOf(costs.kernel, work);
  Coordinates lowest = CoordinatesOf(costs.kernel, costs.points.front().work);
  Coordinates highest = lowest;
  double weights = 1 / Square(Square(kTrustInFit));
  double weighted = weights;
  for (const KernelPoint& point : costs.points) {
    if (IsSame(point.work, work, costs.kernel)) return {point.time, CostSource::kExact};
    const Coordinates own = CoordinatesOf(costs.kernel, point.work);
    double squared_distance = 0;
    for (int i = 0; i < own.count; ++i) {
      lowest.logs[i] = std::min(lowest.logs[i], own.logs[i]);
      highest.logs[i] = std::max(highest.logs[i], own.logs[i]);
      squared_distance += Square(own.logs[i] - wanted.logs[i]);
    }
    const double fit = FitOf(costs, point.work);
    if (fit <= 0) continue;
    const double weight = 1 / Square(std::max(squared_distance, 1e-6));
    weights += weight;
    weighted += weight * point.time.value() / fit;
  }
  bool is_inside = true;
  for (int i = 0; i < wanted.count; ++i) {
    is_inside = is_inside && wanted.logs[i] <= highest.logs[i] + kLogBeyond &&
                wanted.logs[i] >= lowest.logs[i] - kLogBeyond;
  }
  return {Seconds(FitOf(costs, work) * weighted / weights),
          is_inside ? CostSource::kFitted : CostSource::kOutside};
}

}  // namespace

Seconds CostCurve::At(Bytes bytes) const {
  CHECK(!knots.empty());
  if (bytes <= knots.front().bytes || knots.size() == 1) return knots.front().time;
  size_t right = 1;
  while (right + 1 < knots.size() && knots[right].bytes < bytes) ++right;
  const CostKnot& from = knots[right - 1];
  const CostKnot& to = knots[right];
  const double share = (bytes - from.bytes) / (to.bytes - from.bytes);
  // Above the last knot the last slope goes on, but a falling line would end below zero.
  if (share > 1 && to.time < from.time) return to.time;
  return from.time + share * (to.time - from.time);
}

bool CostCurve::Covers(Bytes bytes) const {
  return bytes <= kBeyond * knots.back().bytes && bytes >= knots.front().bytes / kBeyond;
}

std::vector<double> TermsOf(const KernelCosts& costs, const KernelWork& work) {
  if (costs.kernel == Kernel::kGemm) {
    const auto m = static_cast<double>(work.gemm.m);
    const auto n = static_cast<double>(work.gemm.n);
    const auto k = static_cast<double>(work.gemm.k);
    return {1, 2 * m * n * k, m * k, k * n, m * n};
  }
  std::vector<double> terms = {1, work.bytes.value(), work.flops.value()};
  for (const Bytes knot : costs.knots) terms.push_back(std::max(0.0, (work.bytes - knot).value()));
  return terms;
}

std::vector<std::string> TermNames(const KernelCosts& costs) {
  if (costs.kernel == Kernel::kGemm) return {"constant", "2mnk", "mk", "kn", "mn"};
  std::vector<std::string> names = {"constant", "bytes", "flops"};
  for (const Bytes knot : costs.knots)
    names.push_back("bytes above " + std::to_string(static_cast<uint64_t>(knot.value())));
  return names;
}

KernelWork WorkOf(const Compute& compute, DType dtype) {
  KernelWork work;
  work.gemm = compute.gemm;
  work.gemm.m *= compute.gemm.batch;
  work.gemm.batch = 1;
  work.bytes = compute.bytes * (SizeOf(dtype) / SizeOf(compute.dtype));
  work.flops = compute.flops;
  return work;
}

std::optional<MeasuredTime> TimeOf(const MeasuredKernels& measured, const Compute& compute) {
  const DType dtype = measured.computes_in.value_or(compute.dtype);
  // A grouped GEMM is taken as consecutive products, because nobody measures them together.
  const Kernel kernel = compute.kernel == Kernel::kGroupedGemm ? Kernel::kGemm : compute.kernel;
  for (const KernelCosts& costs : measured.kernels) {
    if (costs.kernel != kernel || costs.dtype != dtype) continue;
    if (costs.kernel == Kernel::kGemm && costs.mode != compute.gemm.mode) continue;
    return TimeOf(costs, WorkOf(compute, dtype));
  }
  return std::nullopt;
}

uint32_t MeasuredSteps(CollectiveKind kind, uint32_t ranks) {
  return kind == CollectiveKind::kAllReduce ? 2 * (ranks - 1) : ranks - 1;
}

std::optional<MeasuredTime> TimeOf(const MeasuredCollectives& measured,
                                   const Collective& collective, uint32_t ranks) {
  const CollectiveCosts* nearest = nullptr;
  const auto distance = [&](const CollectiveCosts& costs) {
    return std::abs(Log(costs.ranks) - Log(ranks));
  };
  for (const CollectiveCosts& costs : measured.collectives) {
    if (costs.kind != collective.kind) continue;
    if (nearest == nullptr || distance(costs) < distance(*nearest)) nearest = &costs;
  }
  if (nearest == nullptr) return std::nullopt;
  const DType dtype = measured.computes_in.value_or(collective.dtype);
  const Bytes step = collective.bytes * (SizeOf(dtype) / SizeOf(collective.dtype)) / ranks;
  const bool is_inside = nearest->ranks == ranks && nearest->step.Covers(step);
  return MeasuredTime{MeasuredSteps(collective.kind, ranks) * nearest->step.At(step),
                      is_inside ? CostSource::kFitted : CostSource::kOutside};
}

std::optional<MeasuredTime> MessageTimeOf(const MeasuredCollectives& measured, Bytes bytes) {
  if (!measured.message) return std::nullopt;
  return MeasuredTime{measured.message->At(bytes),
                      measured.message->Covers(bytes) ? CostSource::kFitted : CostSource::kOutside};
}

}  // namespace rehearse
