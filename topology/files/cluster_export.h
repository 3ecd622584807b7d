// Writes any Cluster as a graph (topology/files/cluster_file.h), which ReadCluster() reads back to
// the same cluster: the same vertices and links in the same order, the same ranks, and every
// number to the bit.
//
// A cluster that knows its structure (topology/fabrics/structure.h) is drawn without it, and the
// routes between machines are then searched. They stay what they are if the file says what they are
// those of ("routed_as"). Links of it that are down are then drawn as well, and taken away by
// "edits".
//
// Devices that Rehearse knows are written by name, others in full. Two consecutive links that run
// in opposite directions and are otherwise equal become one "between". Device specs that no vertex
// uses are not written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

// `routed_as` is the preset that the cluster is, with its changes ("dgx-a100:nodes=4"), or, as
// JSON, the object that it was read from; "" for others.
nlohmann::ordered_json ClusterToJson(const Cluster& cluster, const std::string& routed_as = "");

// The same as text, one line for each vertex and link. Throws Error for what a graph cannot say:
// times that a calibration measured.
std::string ClusterToText(const Cluster& cluster, const std::string& routed_as = "");

// The cluster that is given by this text in the compact form (topology/files/compact_form.h), with
// its edits: a node, how many and the fabric, a line for each figure. Nothing if that form, read
// again, is not this cluster to the bit, or if a graph was given, or what was measured.
std::optional<std::string> CompactText(const Cluster& cluster, const std::string& given);

// What a cluster that is given by this text may be "routed_as": a preset's text, or an object
// without what was measured or edited. "" for a graph that does not say.
std::string RoutedAs(const std::string& cluster);

// Whether routes between its machines are those of a fabric, which a graph does not show.
bool HasFabric(const Cluster& cluster);

// Whether the second link leads back over the first, with the same figures.
bool AreToAndFro(const Cluster& cluster, uint32_t there, uint32_t back);

}  // namespace rehearse
