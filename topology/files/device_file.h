// The object that describes a device in a cluster file: each field once, read and written.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "topology/devices/device.h"

namespace rehearse {

JsonShape DeviceChoiceShape();  // a known device's name, or an object
FieldShape AName();             // a text that is not empty

// {"gemm": 0.1, "attention": 0, "memory": 0.2, "communication": 0,
//  "waves": {"multiprocessors": 132, "taken": 24, "tile": [128, 256]}}
const Fields<Slowdown>& SlowdownFields();

// The name of a known device, or an object that describes one.
DeviceSpec ReadDevice(const JsonReader& reader);

// The name if Rehearse knows the device, unchanged; else everything about it.
nlohmann::ordered_json DeviceToJson(const DeviceSpec& device);
bool IsKnownBySpec(const DeviceSpec& device);

}  // namespace rehearse
