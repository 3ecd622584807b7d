#include "real/calibration/machine_pace.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <variant>

#include "real/calibration/probe.h"
#include "real/calibration/probe_schedule.h"
#include "real/transports/transport_threads.h"
#include "sim/engine/timeline.h"

namespace rehearse {
namespace {

constexpr size_t kProducts = 8;
constexpr Seconds kUsual(1e-3);
constexpr Seconds kLeast(2e-4);
constexpr Seconds kMost(1e-2);

auto KeyOf(const Gemm& gemm) { return std::make_tuple(gemm.mode, gemm.m, gemm.n, gemm.k); }

std::vector<KernelPoint> PointsOf(const MeasuredKernels& kernels) {
  std::vector<KernelPoint> points;
  for (const KernelCosts& costs : kernels.kernels) {
    if (costs.kernel != Kernel::kGemm || costs.dtype != DType::kFp32) continue;
    for (KernelPoint point : costs.points) {
      point.work.gemm.mode = costs.mode;
      if (point.time >= kLeast && point.time <= kMost) points.push_back(point);
    }
  }
  std::sort(points.begin(), points.end(), [](const KernelPoint& a, const KernelPoint& b) {
    const auto distance = [](const KernelPoint& p) { return std::abs(std::log(p.time / kUsual)); };
    return std::make_tuple(distance(a), KeyOf(a.work.gemm)) <
           std::make_tuple(distance(b), KeyOf(b.work.gemm));
  });
  if (points.size() > kProducts) points.resize(kProducts);
  return points;
}

Schedule ScheduleOf(uint32_t threads, const std::vector<KernelPoint>& points) {
  std::vector<Gemm> products;
  for (const KernelPoint& point : points) products.push_back(point.work.gemm);
  return products.empty() ? Schedule() : MakeProductProbe(threads, products, 1);
}

}  // namespace

MachinePace::MachinePace(const MeasuredKernels& kernels, uint32_t threads)
    : threads_(threads), points_(PointsOf(kernels)), schedule_(ScheduleOf(threads, points_)) {}

std::optional<double> MachinePace::Measure(const std::function<bool()>& is_stopped) const {
  constexpr uint32_t kSteps = 5;
  constexpr Seconds kPatience(0.5);
  if (points_.empty()) return std::nullopt;
  Seconds expected;
  for (const KernelPoint& point : points_) expected += threads_ * point.time;
  std::vector<double> ratios;
  RunAsThreads(threads_, [&](Transport& transport) {
    const Probe probe = RunUntilKept(
        schedule_, transport, {.kept = kSteps, .patience = kPatience, .is_stopped = is_stopped});
    if (transport.rank() != 0) return;
    for (const ProbedStep* step : probe.Kept()) {
      Seconds taken;
      for (const Span& span : step->timeline.spans) {
        const Op& op = probe.schedule.roles[probe.schedule.role_of_rank[span.rank]].ops[span.op];
        const auto* compute = std::get_if<Compute>(&op.work);
        if (compute != nullptr && compute->kernel == Kernel::kGemm)
          taken += ToSeconds(span.end - span.begin);
      }
      ratios.push_back(taken / expected);
    }
  });
  if (ratios.empty()) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace rehearse
