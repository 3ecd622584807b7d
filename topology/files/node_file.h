// The object that describes a machine in a compact cluster file; see topology/files/cluster_file.h
// for its form.
#pragma once

#include "sim/base/json_reader.h"
#include "sim/base/json_shape.h"
#include "topology/presets/node.h"

namespace rehearse {

const ObjectShape& MachineNodeShape();

// Without its "device", which the cluster has.
NodeSpec ReadNode(const JsonReader& object);

}  // namespace rehearse
