// What devices have for products in 8 and 4 bits: peaks from data sheets, tiles and waves fitted to
// measured shapes in fp8 (topology/OPERATORS.md says to which, and how far off others are).
// Products in fp4 are quicker than those in fp8 by less than the peaks are: NVIDIA's by `share_4`
// of that (narrow_products.cc), on other devices by all of it, which is assumed. Products in mxfp8
// take as long as those with one scale for each array: on a B300 7.16 ms where the others take
// 6.81 (NVIDIA/TransformerEngine d0067d0da, docs/examples/gemm_profiling), which we take to be what
// orders their scales (workloads/planner/casts.h).
#pragma once

#include "topology/devices/device.h"

namespace rehearse {

// Gives a known device what there is for it, and leaves devices without such units as they are.
void AddNarrowProducts(DeviceSpec* device);

}  // namespace rehearse
