// How long kernels take. Layers and micro-batches have equal ones, which are worked out once.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/clock.h"
#include "sim/schedule/schedule.h"
#include "topology/devices/device.h"

namespace rehearse {

// Not thread-safe.
class KernelTimes {
 public:
  // `in_steps`: of a training, which goes on (TimeInSteps); else of each kernel alone.
  explicit KernelTimes(bool in_steps) : in_steps_(in_steps) {}

  // `spec` is the device's number.
  Time Of(const DeviceSpec& device, uint32_t spec, const Compute& compute, bool backward);

 private:
  struct Known {
    uint32_t spec;
    bool backward;
    Compute compute;
    Time time;
  };

  bool in_steps_ = false;
  std::vector<std::vector<Known>> known_ = std::vector<std::vector<Known>>(1024);
};

}  // namespace rehearse
