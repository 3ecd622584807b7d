// The object that describes a fabric in a compact cluster file; see topology/files/cluster_file.h
// for its form.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_reader.h"
#include "sim/base/json_shape.h"
#include "topology/fabrics/fabric.h"

namespace rehearse {

JsonShape FabricShape();
FabricSpec ReadFabric(const JsonReader& reader);
nlohmann::ordered_json FabricToJson(const FabricSpec& fabric);

}  // namespace rehearse
