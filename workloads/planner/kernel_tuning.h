// Tuned BLAS kernels (the SC24 paper, arXiv 2502.08145, section "Automated Tuning of BLAS
// Kernels"): each product is done in the fastest of the modes NN, NT and TN, as the first
// iterations of a run would find by timing.
//
// Assumption: bringing operands into the other order costs nothing (weights are stored that way
// from the start, the op before writes activations that way). This only affects the times in the
// simulation: buffers stay as they are, and backends multiply operands as they lie. Products of 8
// and 4 bits are left alone: their operands lie along k in any mode (workloads/planner/casts.h).
#pragma once

#include "sim/schedule/schedule.h"
#include "topology/devices/device.h"

namespace rehearse {

// Gives every GEMM the mode that is fastest on the device as Compute::tuned; if its own mode is as
// fast as any, leaves it unset.
void TuneKernels(const DeviceSpec& device, Schedule* schedule);

}  // namespace rehearse
