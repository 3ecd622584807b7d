// The parts of a cluster file; see topology/files/cluster_file.h for their form.
#pragma once

#include <memory>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// The name of a known device, or an object that describes one.
DeviceSpec ReadDevice(const JsonReader& reader);

// A cluster drawn vertex by vertex and link by link.
std::unique_ptr<Cluster> ReadGraph(const JsonReader& object);

// {"gemm": 0.1, "attention": 0, "memory": 0.2, "communication": 0,
//  "waves": {"multiprocessors": 132, "taken": 24, "tile": [128, 256]}};
// every key of the first line is optional and 0 if not given, "waves" optional
// (topology/devices/device.h).
Slowdown ReadSlowdown(const JsonReader& object);

}  // namespace rehearse
