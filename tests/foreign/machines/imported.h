// What tests of the importers ask of an imported cluster.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "sim/base/json_document.h"
#include "tests/topology/same_cluster.h"
#include "topology/fabrics/router.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"

namespace rehearse {

inline size_t CountOf(const Cluster& cluster, VertexKind kind) {
  size_t count = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id)
    if (cluster.VertexAt(id).kind == kind) ++count;
  return count;
}

inline size_t CountOf(const Cluster& cluster, LinkKind kind) {
  size_t count = 0;
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.Link(i).kind == kind) ++count;
  return count;
}

inline double BandwidthBetween(const Cluster& cluster, uint32_t from, uint32_t to) {
  Router router(cluster);
  return router.Between(from, to).bandwidth.value();
}

// Whether its export is read as the same cluster.
inline void ExpectComesBack(const Cluster& cluster) {
  const JsonDocument document = JsonDocument::FromText(ClusterToText(cluster), "exported.json");
  ExpectSameCluster(*ReadCluster(document.Root()), cluster);
}

// The message that is thrown, or "".
template <typename Function>
std::string ErrorThrownBy(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace rehearse
