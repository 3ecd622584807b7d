// The rows of the table of known devices: one function each, in device_*.cc, gathered in device.cc.
#pragma once

#include <vector>

#include "topology/devices/device.h"

namespace rehearse {

DeviceSpec A100Sxm40();
DeviceSpec A100Sxm80();
DeviceSpec A100Custom64();                     // Leonardo's
std::vector<DeviceSpec> VoltaAndOlder();       // v100-16g, v100-32g, p100-16g
std::vector<DeviceSpec> HopperAndBlackwell();  // h100, h200, gh200, b200
std::vector<DeviceSpec> OtherDevices();        // mi250x-gcd, tpu-v4, rtx4090, cpu-core

// 183 measured points of an A100, bf16.
std::vector<GemmPoint> A100GemmPoints();

}  // namespace rehearse
