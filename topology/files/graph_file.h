// A cluster that is drawn vertex by vertex; see topology/files/cluster_file.h for its form.
#pragma once

#include <memory>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// A cluster drawn vertex by vertex and link by link.
std::unique_ptr<Cluster> ReadGraph(const JsonReader& object);

}  // namespace rehearse
