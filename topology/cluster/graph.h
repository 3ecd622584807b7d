// A cluster's wiring as a Boost graph, for code that searches it. Only such code includes this
// header: Boost.Graph takes longer to compile than most of what uses clusters. Vertices are those
// of the wiring; an edge knows its link's index.
#pragma once

#include <cstdint>
#include <type_traits>

#include <boost/graph/adjacency_list.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

struct ClusterEdge {
  uint32_t index = 0;  // of the link
};
using ClusterGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                           boost::no_property, ClusterEdge>;
using EdgeId = ClusterGraph::edge_descriptor;
static_assert(std::is_same_v<ClusterGraph::vertex_descriptor, VertexId>);

struct Wiring::Graph {
  ClusterGraph graph;
};

inline const ClusterGraph& GraphOf(const Cluster& cluster) {
  return cluster.wiring()->graph().graph;
}

}  // namespace rehearse
