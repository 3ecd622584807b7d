// Writes any Cluster as a graph (topology/files/cluster_file.h), which ReadCluster() reads back to
// the same cluster: the same vertices and links in the same order, the same ranks, and every
// number to the bit.
//
// Devices that Rehearse knows are written by name, others in full. Two links that follow each
// other, lead to and fro and are otherwise equal become one "between". Device specs that no vertex
// uses are not written.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

nlohmann::ordered_json ClusterToJson(const Cluster& cluster);

// The same as a text, one line for each vertex and link.
std::string ClusterToText(const Cluster& cluster);

// As topology/files/graph_file.h reads it.
nlohmann::ordered_json ToJson(const Slowdown& slowdown);

// The shortest text that sim/base/units.h reads as exactly this quantity.
std::string ExactText(BytesPerSecond bandwidth);
std::string ExactText(Seconds duration);

}  // namespace rehearse
