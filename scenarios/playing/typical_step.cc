#include "scenarios/playing/typical_step.h"

#include <algorithm>
#include <limits>

#include "topology/devices/speed_spread.h"

namespace rehearse {

std::optional<TypicalStep> TypicalOf(const Result& result, const Scenario& scenario,
                                     const Job& job) {
  const Perturbation& perturbation = scenario.lowering.perturbation;
  if (perturbation.compute_jitter > 0 || !perturbation.straggling.empty()) return std::nullopt;
  const Cluster& cluster = *scenario.cluster;
  double spread = std::numeric_limits<double>::infinity();
  for (const uint32_t device : job.placement) {
    const DeviceSpec& spec = cluster.DeviceOf(device);
    spread = std::min(spread, spec.measured ? 0.0 : SpeedSpread(spec));
  }
  const auto count = static_cast<uint32_t>(job.placement.size());
  if (count == 0 || spread == 0) return std::nullopt;
  const auto with = [&](double slowest) {
    return result.step + (slowest - 1) * result.breakdown.compute;
  };
  const double median = SlowestOf(count, 0.5, spread);
  return TypicalStep{with(median), with(SlowestOf(count, 0.1, spread)),
                     with(SlowestOf(count, 0.9, spread)), median};
}

}  // namespace rehearse
