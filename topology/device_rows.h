// The rows of the table of known devices: one function each, in device_*.cc, gathered in device.cc.
#pragma once

#include <vector>

#include "topology/device.h"

namespace rehearse {

DeviceSpec A100Sxm40();
DeviceSpec A100Sxm80();

// 183 measured points of an A100, bf16.
std::vector<GemmPoint> A100GemmPoints();

}  // namespace rehearse
