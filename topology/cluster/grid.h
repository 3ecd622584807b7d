// Recognises a torus or mesh by its links: for pictures, communication matrices and bisections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// Rank r has the coordinates r % sizes[0], (r / sizes[0]) % sizes[1], ...; neighbours differ by one
// in one coordinate.
struct Grid {
  std::vector<uint32_t> sizes;
  std::vector<bool> wraps;  // whether a dimension's last has a link to its first; false for size 2

  uint32_t Coordinate(uint32_t rank, size_t dimension) const;
};

// The rank whose own router a vertex is (a switch that touches this device and no other), or
// nothing. A device is its own.
std::vector<std::optional<uint32_t>> RouterOwners(const Cluster& cluster);

// The grid of four devices or more that the cluster is, if it is nothing else: each device,
// together with its own router, has links to its neighbours only.
std::optional<Grid> FindGrid(const Cluster& cluster);

// A grid whose places are machines: what belongs to a node, together with the switch that touches
// it and no other node.
struct GridOfNodes {
  Grid grid;
  std::vector<std::string> nodes;    // by place
  std::vector<uint32_t> place_of;    // by vertex
  std::vector<uint32_t> devices_of;  // by place: how many
};
std::optional<GridOfNodes> FindGridOfNodes(const Cluster& cluster);

}  // namespace rehearse
