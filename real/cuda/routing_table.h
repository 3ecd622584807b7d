// What the GPU kernels of experts (real/cuda/kernels/experts.cuh) are told about which tokens
// choose what, so that they need not work it out: numbers behind a kernel's attributes on the
// device.
//
// The numbers are, of a run of `period` tokens (sim/schedule/expert_routing.h):
//   period
//   for each expert, and once more behind the last: how many choices the experts before it take
//   for each expert: the share of all choices that ask for it
//   for each token and choice: the expert, and which of the expert's rows it is; -1: dropped
#pragma once

#include <span>
#include <vector>

#include "real/cuda/kernel_arguments.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// It is empty for a kernel that needs none. `operands` are the reads, then the writes. Throws Error
// if this rank's tokens are not whole runs from their beginning.
std::vector<double> RoutingTable(const Compute& compute, std::span<const GpuOperand> operands,
                                 size_t reads);

}  // namespace rehearse
