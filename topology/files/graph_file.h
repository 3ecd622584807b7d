// A cluster that is drawn vertex by vertex; see topology/files/cluster_file.h for its form.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// What it says beside devices, vertices, links and what it is routed as.
struct GraphObject {
  std::string name;
  std::vector<std::string> notes;
  Seconds step_overhead;
  Seconds collective_overhead;
  Seconds channel_overhead;
  std::string network_plugin = "ib";
};
const Fields<GraphObject>& GraphFields();

std::unique_ptr<Cluster> ReadGraph(const JsonReader& object);

// For topology/files/cluster_export.h: without its device, and without its ends.
nlohmann::ordered_json VertexToJson(const Vertex& vertex);
void WriteLink(const ClusterLink& link, nlohmann::ordered_json* to);

}  // namespace rehearse
