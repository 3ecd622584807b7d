// A GPU's overheads: launches, events, and copies from and to the host. They are measured without a
// Schedule, on one stream of an otherwise idle device, as medians of several rounds.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "real/cuda/libraries.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct CopyTime {
  Bytes bytes;
  Seconds time;
};

struct GpuOverheads {
  Seconds launch;       // from one empty kernel to the next on the device, back to back
  Seconds host_launch;  // the host's time to launch one
  Seconds event;        // the host's time to record one
  // What a pair of events adds to an op's time: the device's time from one to the other, alone.
  Seconds event_gap;
  std::vector<CopyTime> to_device;  // from pinned memory
  std::vector<CopyTime> from_device;
  std::vector<CopyTime> on_device;
};

// Sets the current device. Measures copies of up to `largest` bytes.
GpuOverheads MeasureOverheads(const GpuLibraries& gpu, int device, Bytes largest);

nlohmann::ordered_json ToJson(const GpuOverheads& overheads);

}  // namespace rehearse
