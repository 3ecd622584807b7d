// How fast a machine is now, beside when it was calibrated: products that the calibration measured
// are run again. Others who share a host, its caches and its clock make everything slower for
// seconds at a time without a step being queued or stolen from, so that nothing else shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/devices/measured_costs.h"

namespace rehearse {

class MachinePace {
 public:
  // Of some 1 ms each, up to eight of those that were measured in fp32; none are needed. `threads`:
  // as many run at once, no more than the machine has cores.
  MachinePace(const MeasuredKernels& kernels, uint32_t threads);

  // How many times as long as in the calibration they take now, in the median of a few steps that
  // were left alone, which takes some 0.1 s. Nothing if there are no products, or none was left
  // alone. Throws Stopped when it is stopped before that.
  std::optional<double> Measure(const std::function<bool()>& is_stopped) const;

 private:
  uint32_t threads_;
  std::vector<KernelPoint> points_;
  Schedule schedule_;
};

}  // namespace rehearse
