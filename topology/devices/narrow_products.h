// What devices have for products in 8 and 4 bits: peaks from data sheets, tiles and waves fitted to
// measured shapes in fp8 (topology/OPERATORS.md says to which, and how far off others are).
// Products in fp4 are assumed to reach the same shares of their own peak, and those in mxfp8 the
// same shares of fp8's.
#pragma once

#include "topology/devices/device.h"

namespace rehearse {

// Gives a known device what there is for it, and leaves devices without such units as they are.
void AddNarrowProducts(DeviceSpec* device);

}  // namespace rehearse
