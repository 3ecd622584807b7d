// The object that describes a machine in a compact cluster file; see topology/files/cluster_file.h
// for its form.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_reader.h"
#include "sim/base/json_shape.h"
#include "topology/presets/node.h"

namespace rehearse {

const ObjectShape& MachineNodeShape();

// Without its "device", which the cluster has.
NodeSpec ReadNode(const JsonReader& object);

// What is read as this node again, if its links between devices are a plane or all of one sort.
// `device` is a known one's name or an object.
nlohmann::ordered_json NodeToJson(const NodeSpec& node, const nlohmann::ordered_json& device);

}  // namespace rehearse
