// What is wired in a cluster: vertices with their names, links with their ends and kinds, ranks,
// machines. Figures are not part of it (topology/cluster/figures.h). A ClusterBuilder makes it;
// from then on it never changes, and all clusters that differ only in figures share it.
//
// Vertex names are made when asked for, except those of the fabric. topology/cluster/graph.h has
// the wiring as a graph that can be searched, which needs Boost.Graph; this header, like everything
// that includes no more than topology/cluster/cluster.h, does without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "sim/base/quantity.h"
#include "topology/cluster/equal_machines.h"
#include "topology/cluster/trunks.h"

namespace rehearse {

struct ClusterStructure;  // topology/fabrics/structure.h
class FigureTable;        // topology/cluster/figures.h

// "device", "nic", "pcie-switch", "socket", "nvswitch", "switch"
const char* Name(VertexKind kind);
// "nvlink", "xgmi", "pcie", "socket", "network", "memory"
const char* Name(LinkKind kind);

using VertexId = size_t;  // in the order of adding
inline constexpr VertexId kNoVertex = ~VertexId{0};

struct Vertex {
  std::string name;  // "node0/gpu1"
  VertexKind kind = VertexKind::kDevice;
  std::string node;  // the machine it is part of; "" for the fabric
};

// First what was drawn one by one, then equal machines.
class Wiring {
 public:
  struct Graph;  // topology/cluster/graph.h

  explicit Wiring(std::string cluster);
  ~Wiring();
  Wiring(const Wiring&) = delete;
  Wiring& operator=(const Wiring&) = delete;

  std::string name;  // the cluster's
  std::vector<Vertex> drawn_vertices;
  std::vector<WiredLink> drawn_links;
  EqualMachines machines;
  // What the links were drawn with, whatever edits and calibrations lay over them since: it decides
  // which way is taken.
  std::shared_ptr<const FigureTable> drawn_figures;
  // For NICs that were drawn one by one: the bandwidth of all their cables together at that time.
  std::map<VertexId, BytesPerSecond> nic_speeds;
  std::vector<VertexId> devices;     // rank -> vertex
  std::vector<uint32_t> node_index;  // by rank; machines are numbered by their first device
  uint32_t node_count = 0;
  std::shared_ptr<const ClusterStructure> structure;  // null if it was drawn vertex by vertex
  Trunks trunks;                                      // none then either

  size_t vertex_count() const { return drawn_vertices.size() + machines.vertex_count(); }
  size_t link_count() const { return drawn_links.size() + machines.link_count(); }
  Vertex VertexAt(VertexId id) const;
  VertexKind KindAt(VertexId id) const {
    if (id < drawn_vertices.size()) return drawn_vertices[id].kind;
    return machines.parts[(id - drawn_vertices.size()) % machines.parts.size()].kind;
  }
  WiredLink LinkAt(size_t index) const;
  // kNoVertex: there is none with that name.
  VertexId Find(std::string_view vertex) const;
  // Made when any thread first asks for it.
  const Graph& graph() const;

  // Drawn vertices by their names, which only the vertices themselves hold.
  struct HashName {
    using is_transparent = void;
    const std::vector<Vertex>* of;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    size_t operator()(VertexId id) const { return (*this)(std::string_view((*of)[id].name)); }
  };
  struct SameName {
    using is_transparent = void;
    const std::vector<Vertex>* of;
    bool operator()(VertexId a, VertexId b) const { return (*of)[a].name == (*of)[b].name; }
    bool operator()(std::string_view a, VertexId b) const { return a == (*of)[b].name; }
    bool operator()(VertexId a, std::string_view b) const { return b == (*of)[a].name; }
  };
  std::unordered_set<VertexId, HashName, SameName> vertex_by_name{0, HashName{&drawn_vertices},
                                                                  SameName{&drawn_vertices}};

 private:
  mutable std::once_flag graph_once_;
  mutable std::unique_ptr<Graph> graph_;
};

}  // namespace rehearse
