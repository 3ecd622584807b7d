// Writes any Cluster as a graph (topology/files/cluster_file.h), which ReadCluster() reads back to
// the same cluster: the same vertices and links in the same order, the same ranks, and every
// number to the bit.
//
// A cluster that knows its structure (topology/fabrics/structure.h) is drawn without it, and the
// routes between machines are then searched. Routes of a preset stay what they are if the file
// names the preset ("routed_as").
//
// Devices that Rehearse knows are written by name, others in full. Two consecutive links that run
// in opposite directions and are otherwise equal become one "between". Device specs that no vertex
// uses are not written.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

// `preset` is the one that the cluster is, with its changes ("dgx-a100:nodes=4"); "" for others.
nlohmann::ordered_json ClusterToJson(const Cluster& cluster, const std::string& preset = "");

// The same as text, one line for each vertex and link. Throws Error for what a graph cannot say:
// times that a calibration measured.
std::string ClusterToText(const Cluster& cluster, const std::string& preset = "");

// Whether routes between its machines are those of a fabric, which a graph does not show.
bool HasFabric(const Cluster& cluster);

// Whether the second link leads back over the first, with the same figures.
bool AreToAndFro(const Cluster& cluster, uint32_t there, uint32_t back);

}  // namespace rehearse
