// The rows of the table of known devices: one function each, in device_*.cc, gathered in device.cc.
#pragma once

#include <vector>

#include "topology/devices/device.h"

namespace rehearse {

DeviceSpec A100Sxm40();
DeviceSpec A100Sxm80();
DeviceSpec A100Custom64();  // Leonardo's
DeviceSpec A800Sxm80();
std::vector<DeviceSpec> VoltaAndOlder();      // v100-16g, v100-32g, p100-16g
std::vector<DeviceSpec> Hoppers();            // h100, h100-pcie, h100-nvl, h800, h20, h200, gh200
std::vector<DeviceSpec> BlackwellsAndAdas();  // b200, b300, gb200, gb300, l40s, rtx4090
std::vector<DeviceSpec> OtherDevices();       // AMD's, TPUs, cpu-core

// 183 measured points of an A100, bf16.
std::vector<GemmPoint> A100GemmPoints();

}  // namespace rehearse
